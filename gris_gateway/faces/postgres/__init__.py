"""The protocol of PostgreSQL in a gateway, for its own clients.

It asks by the gateway's own calls, and nothing else.
"""
