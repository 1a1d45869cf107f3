"""What a budget is worth, and which budget is worth what is wanted: composition of what the mechanisms promise.

Pure functions. What bounds privacy loss is computed in interval arithmetic and rounded up, to the next float.
"""
