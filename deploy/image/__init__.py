"""How images are built, and how a container checks its own health."""
