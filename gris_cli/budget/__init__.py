"""`gris budget`: what accounts have left and spent, their limits, and whether the ledger is right."""
