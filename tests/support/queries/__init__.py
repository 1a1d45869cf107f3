"""Random tables and questions, a reader of them that knows nothing of the service, and what each must mean."""
