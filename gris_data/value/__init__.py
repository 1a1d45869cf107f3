"""Bounds of sums that are chosen privately, priced and published as files."""
