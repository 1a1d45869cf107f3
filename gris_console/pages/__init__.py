"""The pages: the sign-in page, those of analysts, and those of owners."""
