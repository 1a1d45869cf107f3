"""Bounded copies of a table, made by DuckDB or Spark."""
