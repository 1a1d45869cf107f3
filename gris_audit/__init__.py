"""The bundle of `gris audit export`: `bundle` is its format, `checking` verifies one offline.

What asks the services for it is `gris_cli.audit.collecting`.
"""
