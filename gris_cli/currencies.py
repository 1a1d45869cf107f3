"""What has changed in a policy since a folder was last used with it, found out before anything is started.

A ledger knows a currency by the hash of its numbers. So the numbers of each policy that is served are written beside
it, and so is the text of the last one.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from gris_cli.data.errors import InputError

if TYPE_CHECKING:
    from dp_service.queries.currency import Currency

FILE = "currencies.json"
LAST = "policy.json"
LEDGER = "ledger.sqlite"
_KEYS = ("epsilon_per", "delta", "count_noise", "blocks")


def require_currency(policy: Path, directory: Path) -> None:
    """Refuse a policy in another currency than that of the policies before, if any budget was spent in it.

    Args:
        policy: The policy's file.
        directory: Where the ledger is, or will be.

    Raises:
        InputError: The currency is another one; the text names each key that has changed, and what can be done. Or the
            policy has faults.
    """
    from budget_service.stores.sqlite.file import currencies_in
    from gris_cli.data.policies import policy_of

    currency = policy_of(policy).currency
    known = _read(directory / FILE)
    spent = currencies_in(directory / LEDGER)
    if currency.unit_id not in spent:
        for unit_id in spent & known.keys():
            raise InputError(_difference(policy, directory, known[unit_id], _numbers(currency)))
    if currency.unit_id not in known:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write(directory / FILE, known | {currency.unit_id: _numbers(currency)})
    _say_changes(policy, directory)


def _say_changes(policy: Path, directory: Path) -> None:
    """Say in which keys a policy differs from what it was when the folder was last used with it."""
    from gris_serving.yaml_texts import TextError, changed_keys

    found = str(_read(directory / LAST).get(str(policy.resolve()), {}).get("text", ""))
    text = policy.read_text(encoding="utf-8")
    if found == text:
        return
    with suppress(TextError):
        if found and (changed := changed_keys(found, text)):
            typer.echo(
                f"{policy} has changed since {directory} was last used: {changed}. What is asked under other settings "
                "is a new question, and is paid for again.",
                err=True,
            )
    _write(directory / LAST, {str(policy.resolve()): {"text": text}})


def _difference(policy: Path, directory: Path, before: dict[str, str], now: dict[str, str]) -> str:
    changed = [key for key in _KEYS if before.get(key) != now[key]] or _KEYS
    is_now = ", ".join(f"{key} {now[key]}" for key in changed)
    was = ", ".join(f"{key} {before.get(key)}" for key in changed)
    return (
        f"{policy} has {is_now}, and budgets in {directory} were spent with {was}: in another currency, that is what a "
        "unit of a budget is worth, so units of the two do not add up. --directory names another folder, with budgets "
        "of its own; or put that back into the policy; docs/budget.md says how an "
        "operator begins a new currency in a ledger"
    )


def _numbers(currency: Currency) -> dict[str, str]:
    """Return the numbers as a policy may state them, and how it divides members."""
    blocks = currency.blocks
    return {
        "epsilon_per": str(float(currency.epsilon_per)),
        "delta": str(float(currency.delta)),
        "count_noise": currency.count_noise.value,
        "blocks": "none" if blocks is None else f"by {blocks.name} ({', '.join(map(str, blocks.values))})",
    }


def _read(path: Path) -> dict[str, dict[str, str]]:
    """Return what is written there; a file that is lost or spoilt costs the names of keys, and nothing else."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and all(isinstance(each, dict) for each in found.values()) else {}


def _write(path: Path, known: dict[str, dict[str, str]]) -> None:
    from gris_cli.data.private_files import replace

    replace(path, json.dumps(known, indent=1) + "\n")
