"""The ledger of privacy budgets. It sees costs and ids, never questions or results.

`ledger` holds the rules and does no I/O. `stores` keep the state and apply the rules, one transaction for each request.
`configuration` reads `budget.yaml`. `server` speaks gRPC; `server.process` puts the parts together.
"""
