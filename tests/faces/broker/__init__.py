"""Pinot's HTTP in front of a gateway."""
