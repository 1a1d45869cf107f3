"""`gris draft` and `gris check`: a first policy for a table, and what a policy allows."""
