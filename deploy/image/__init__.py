"""What images are made with, and how a container asks itself whether it serves."""
