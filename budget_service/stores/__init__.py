"""Stores: where a ledger is kept. Each follows `interface.Store` and is held to the rules by one conformance suite."""
