"""Apache Spark: for tables that are too large or too raw for Pinot.

`sessions` starts Spark and opens the session of a question, `sources` finds the tables and their versions, and `engine`
runs the queries.
"""

from pinot_connector.engines.spark.engine import SparkEngine

__all__ = ["SparkEngine"]
