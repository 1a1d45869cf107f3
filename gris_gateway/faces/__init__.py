"""Faces of a gateway: each answers one kind of client in its own protocol, and asks the gateway for the answers."""
