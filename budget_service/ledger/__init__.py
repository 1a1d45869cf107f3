"""The rules of the ledger: pure functions from a state, a request and a time to a new state and an outcome."""
