"""One member's odd row at a time: no condition makes it an error, and engines select the rows of the reference."""
