"""Images, and a Pinot for trying things out."""
