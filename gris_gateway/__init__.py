"""The application's server, ready-made: private questions for callers that are not trusted with counts.

    python -m gris_gateway --config gateway.yaml

It serves `gris.app.v1.PrivateQueryService`. Who calls decides whose budget pays; released results are kept for a while.
"""
