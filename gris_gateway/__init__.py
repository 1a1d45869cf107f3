"""A ready-made server: private questions for callers that are not trusted with true counts.

    python -m gris_gateway --config gateway.yaml

It serves `gris.app.v1.PrivateQueryService`. The identity of the caller decides whose budget pays. Results are kept
for a while.
"""
