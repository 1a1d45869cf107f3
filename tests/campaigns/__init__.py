"""Long runs against the real services, by `make`; what their folders test is their own machinery and a short run."""
