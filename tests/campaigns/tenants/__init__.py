"""Fifty tenants ask a gateway; each learns what it would learn in a world that has nothing but what it is offered."""
