"""Publish which elements of a column are safe to name, inspect what was published, compare methods."""
