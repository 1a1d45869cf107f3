"""Bounded copies and pairs copies of a table, made by DuckDB or Spark."""
