"""A real Apache Superset asks a real gateway."""
