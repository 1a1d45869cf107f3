"""What `docker compose up` needs beside compose.yaml."""
