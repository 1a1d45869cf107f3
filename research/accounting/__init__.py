"""The smallest bound of an adaptive budget, what checks it, and other bounds beside it."""
