"""`python -m gris_gateway`."""

import sys

from gris_gateway.process import main

sys.exit(main())
