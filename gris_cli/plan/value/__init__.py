"""`gris plan value`: bounds, quantum and grid of a value column, from what is known of its values; it reads no data.

`spread` says what is known of how members' totals are spread, from numbers of the owner's or from a release that was
paid for, and what a bound then cuts at least and at most. `choices` sets that beside the noise that a bound brings.
"""
