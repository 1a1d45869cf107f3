"""The speed of the ledger beside an empty call and one durable row on the same server.

`server` is budget_service with both beside its own methods, `load` calls all in turn from a process of its own,
`fill` gives a store as many accounts as wanted, `__main__` runs them and prints the table.
"""
