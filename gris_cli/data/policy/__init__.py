"""Policies and the data that they speak of: a first draft, and whether the promises are kept."""
