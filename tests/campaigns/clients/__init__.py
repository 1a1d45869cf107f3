"""Clients of Apache Pinot, as registries have them, ask a real gateway: `make clients-check`."""
