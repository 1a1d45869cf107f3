"""Kills, pauses and broken connections under load, and the proof afterwards that the ledger kept both of its promises.

    python -m tests.campaigns chaos --store redis --charges 10000 --kills 60 --seed 1

`history` is what was reported to the clients, `checker` compares it with the ledger at the end and does no I/O.
`stage` runs the real processes, `proxy` the connections between them, `clients` the load, `fault_injection` the faults.
"""
