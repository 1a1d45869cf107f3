"""What a budget is worth: composition of what the mechanisms promise. Pure functions; guarantees are rounded up."""
