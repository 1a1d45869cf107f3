"""The planning laboratory: what budgets are worth, and what mechanisms would find, simulated and drawn.

Nothing that serves imports it. Its numbers come from made-up histograms, published figures, or data that the owner
names for that purpose.
"""
