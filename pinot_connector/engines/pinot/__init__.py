"""Apache Pinot as an engine.

`engine` asks the broker, `controller` knows what a whole answer covers, `answer` judges, and `configuration` says
under which settings Pinot cannot be trusted to count.
"""

from pinot_connector.engines.pinot.engine import PinotEngine

__all__ = ["PinotEngine"]
