"""Which bounds of values to choose for sums and averages."""
