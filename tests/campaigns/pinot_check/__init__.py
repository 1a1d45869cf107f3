"""Asks a running Pinot of any version what the connector depends on, and prints a table of what holds.

    PINOT_BROKER=http://broker:8099 PINOT_CONTROLLER=http://controller:9000 python -m tests.campaigns pinot_check

It makes tables of its own, whose names begin with `gris_check_` and a number drawn at random, and removes them again.
No setting of the cluster and no other table is touched.
"""
