"""Apache Pinot as an engine.

`engine` asks the broker, `controller` knows what a whole answer covers, `answer` judges, and `configuration` says
under which settings Pinot cannot be trusted to count. `segment_lists` reads which segments a table has, `loaded` asks
the servers which of them they have loaded, and `settling` knows when a new version may be used.
"""

from pinot_connector.engines.pinot.engine import PinotEngine
from pinot_connector.engines.pinot.loaded_segments import LoadOptions

__all__ = ["LoadOptions", "PinotEngine"]
