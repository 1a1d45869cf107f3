"""Generated from the protocol buffers of Gris by protos/generate.py."""
