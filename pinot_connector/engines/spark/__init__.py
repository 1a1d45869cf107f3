"""Apache Spark: for tables that are too large or too raw for Pinot.

`sessions` starts Spark and opens the session of one question, `sources` knows the tables and their versions, `engine`
asks.
"""

from pinot_connector.engines.spark.engine import SparkEngine

__all__ = ["SparkEngine"]
