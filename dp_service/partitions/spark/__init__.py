"""Private domain discovery on Apache Spark: the same domain as on arrays, for data that one machine does not hold.

``pairs`` orders and bounds what members hold; ``weights`` sums what they add; ``noise`` compares it with the cuts;
``discovery`` goes round by round. Weights, noise and cuts are those of the modules above this one; here is only how
they are computed on DataFrames. Nothing of the data is collected: what leaves Spark is what was released, and sizes
that must not be exceeded.

Needs PySpark on this machine, and this package on the executors.
"""

from dp_service.partitions.spark.discovery import SparkFailedError, discover_on_spark

__all__ = ["SparkFailedError", "discover_on_spark"]
