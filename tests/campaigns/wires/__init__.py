"""Mutated messages of PostgreSQL and requests of HTTP at a real gateway."""
