"""A real Apache Pinot on one machine, for demonstrations and tests."""
