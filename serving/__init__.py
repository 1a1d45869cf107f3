"""What every server of the project needs besides its own work: sight, health and a graceful end.

It knows nothing of the services that use it, and imports nothing of the project.
"""
