"""What `docker compose up` needs besides compose.yaml."""
