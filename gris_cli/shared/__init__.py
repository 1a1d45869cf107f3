"""What a first shared answer needs besides the services: identity, gateway, and what to paste where."""
