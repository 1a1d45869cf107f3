"""`gris policy`: check a policy, compare it with data, and draft one for a table."""
