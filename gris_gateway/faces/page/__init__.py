"""The page: one web page to ask by SQL and to see the budget, which a gateway serves in its own process.

It has no power of its own: each request is admitted by the gateway as whoever looks at the page, and asks it as a
client does. It sees no true counts.
"""
