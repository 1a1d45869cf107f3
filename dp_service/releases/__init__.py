"""Releases: keys, specification, plan, ids, and the step from a histogram to a release.

Pure: the key, the time and fresh random bytes are passed in. It may use noise, mechanisms and queries, and imports no
gRPC.
"""
