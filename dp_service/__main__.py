"""`python -m dp_service`."""

import sys

from dp_service.server.process import main

sys.exit(main())
