"""Engines run rendered SQL and confirm their answers. They render none themselves."""
