"""Accounting that only comparisons need: optimal composition, attacks, published deployments."""
