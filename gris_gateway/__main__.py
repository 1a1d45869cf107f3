"""`python -m gris_gateway`."""

import os
import sys

# Where Python forks to start a program, as on macOS, gRPC's handlers of forks break connections of callers. gRPC reads
# this when it is loaded.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "false"

from gris_gateway.process import main

sys.exit(main())
