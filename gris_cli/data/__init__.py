"""What an owner does with its own data: bounded copies, published domains and bounds, policies held against the data.

Nothing here serves: what it reads and counts is true, and for the owner alone. It knows no command line.
"""
