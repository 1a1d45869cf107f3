"""The ledger of what each analyst has learnt; it never knows what is asked.

`ledger` holds the rules and does no I/O; `stores` keep the state and apply the rules in one transaction each; `server`
speaks gRPC; `__main__` is the one place that puts them together.
"""
