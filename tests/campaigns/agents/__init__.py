"""A hostile agent at a real gateway: what it learns, what it spends, and whose budget it spends."""
