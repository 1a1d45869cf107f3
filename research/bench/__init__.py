"""Benchmarks of what Gris claims beside others, and of nothing that is served."""
