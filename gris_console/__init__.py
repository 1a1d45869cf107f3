"""The console: web pages for analysts and for the owners of data, in front of a gateway.

Analysts see what may be asked, the price and the accuracy of a question before they ask it, its answer, what they have
paid for, and what is left of their budget. Owners see accounts and limits, usage, guarantees, and check policies.

It has no power of its own: each call carries the log-in of the person who uses it, and the gateway and the services
decide what that person may do. It sees no true counts.
"""
