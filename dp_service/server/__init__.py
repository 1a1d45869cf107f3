"""gRPC only: messages in and out, errors to status codes, and the process around them."""
