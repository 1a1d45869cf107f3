"""SIGKILL at any moment of a gateway, the services and their store, under load on changing rows, and what must hold.

    python -m tests.campaigns kills --store sqlite --minutes 10 --seed 1

`questions` is what is asked of which rows, `history` what callers were shown and what the ledger says afterwards, and
`checker` compares the two and does no I/O. `stage` runs the real processes, `callers` the load, `fault_injection`
kills, and `final_checks` asks everything again.
"""
