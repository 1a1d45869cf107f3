"""Clients of Apache Pinot and PostgreSQL, as registries have them, ask a real gateway."""
