"""All tests. Nothing is imported from a `test_*` module."""

import os

import grpc

# PySpark forks to start Java. In the child, gRPC would start its threads again before there is a Java, and sometimes
# the child does not survive that. gRPC reads this once, for its first channel; what tests start decides for itself.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
grpc.insecure_channel("127.0.0.1:1").close()
del os.environ["GRPC_ENABLE_FORK_SUPPORT"]

# Whatever tests start is on this machine, and some of their own clients would ask even that through a proxy.
for _name in ("no_proxy", "NO_PROXY"):
    os.environ[_name] = ",".join(filter(None, (os.environ.get(_name), "localhost,127.0.0.1,::1")))
