"""A made-up table of orders, which recipes and the tutorial ask about."""
