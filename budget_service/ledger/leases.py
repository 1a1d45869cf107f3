"""The names under which the home ledger keeps a lease: its parts, and the changes to it."""

from __future__ import annotations

LEASE_PREFIX = "lease:"


def lease_part(lease_id: str, number: int) -> str:
    """Return the id of the reservation that is left of a lease after so many charges.

    It is also the name of the change that left it. Clients can neither learn a lease's id nor use such a name.
    """
    return f"{LEASE_PREFIX}{lease_id}.{number}"


def lease_return(lease_id: str, number: int) -> str:
    """Return the name of the change that takes back what is left of a lease after so many charges."""
    return f"{lease_part(lease_id, number)}.end"


def is_lease(reservation_id: str) -> bool:
    """Return whether a reservation of the home ledger is what is left of a lease."""
    return reservation_id.startswith(LEASE_PREFIX)


def lease_of(name: str) -> str:
    """Return the lease that the name of a part of it, or of a change to it, is of."""
    return name.removeprefix(LEASE_PREFIX).partition(".")[0]
