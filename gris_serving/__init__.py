"""What every server of Gris needs besides its own work: TLS, roles and tokens, telemetry, health, a graceful end.

Services and the gateway may import this package; it imports nothing of theirs.
"""
