"""`python -m budget_service`."""

import sys

from budget_service.server.process import main

sys.exit(main())
