"""Public data to try Gris with, and the programs that load it into Apache Pinot."""
