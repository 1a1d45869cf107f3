"""Engines run rendered SQL and vouch for their answers. No SQL is made here."""
