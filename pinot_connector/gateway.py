"""The former place of the gateway: `python -m pinot_connector.gateway` says where it is now.

For one version, so that a deployment that still starts it by its old name fails with the new one in its log.
"""

import sys

MOVED = "pinot_connector.gateway: the gateway is a package of its own now: run `python -m gris_gateway`\n"
EXIT_MISCONFIGURED = 2

if __name__ == "__main__":
    sys.stderr.write(MOVED)
    sys.exit(EXIT_MISCONFIGURED)
