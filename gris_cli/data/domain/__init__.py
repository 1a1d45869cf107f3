"""Domains that are discovered privately, priced and published as files."""
