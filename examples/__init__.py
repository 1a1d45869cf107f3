"""Public data to try Gris on, and what puts it into an Apache Pinot."""
