"""Research beside Gris, which imports nothing of it."""
