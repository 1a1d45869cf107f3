"""The pages: the entrance, those of analysts, and those of owners."""
