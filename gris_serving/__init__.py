"""What every server of Gris needs besides its own work: who may call and over what line, sight, health, a graceful end.

Services and the gateway may import this room; it knows nothing of them, and imports nothing of theirs.
"""
