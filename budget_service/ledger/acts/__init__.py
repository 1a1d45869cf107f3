"""What may be asked of the ledger, one module an act."""
