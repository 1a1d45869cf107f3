"""`gris value`: publish a bound for the values of a column, and inspect what was published."""
