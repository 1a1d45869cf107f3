"""Mutants: what the product must never become, one change of its text each, with the test that notices it."""
