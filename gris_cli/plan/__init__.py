"""`gris plan`: what budgets are worth, which to choose, and what questions would find.

Only this package and nothing that serves draws noise for simulations.
"""
