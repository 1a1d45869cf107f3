"""What a first shared answer needs besides the services: identity, gateway, console, and what to paste where."""
