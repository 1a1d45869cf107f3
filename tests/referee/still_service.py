"""dp_service with a clock that stands still: what it says to a question depends on the time in nothing else."""

from __future__ import annotations

import sys
import time

from tests.support.queries.policies import NOW

if __name__ == "__main__":
    # Before the service takes the clock from the module.
    time.time = lambda: float(NOW)
    from dp_service.server.process import main

    sys.exit(main())
