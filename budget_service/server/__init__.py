"""gRPC and the process around it: messages in and out, errors to status codes, limits, checks and metrics."""
