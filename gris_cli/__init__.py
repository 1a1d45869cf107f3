"""The `gris` command: one module a command, and nothing heavy is imported before a command needs it."""
