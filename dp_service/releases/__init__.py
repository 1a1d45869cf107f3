"""What a release is made of: keys, specification, plan, identity, and the step from a histogram to a release.

Pure: the key, the moment and fresh randomness are passed in. It may use noise, mechanisms and queries; gRPC is not
known here.
"""
