"""`python -m gris_mcp`."""

import sys

from gris_mcp.stdio import main

sys.exit(main())
