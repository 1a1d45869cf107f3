"""The options of the budget service's command line, and what they name."""

from __future__ import annotations

import argparse
from pathlib import Path

from budget_service.configuration.budget_file import Configuration, ConfigurationError
from budget_service.ledger.values import InvalidFieldError
from budget_service.server.admin_messages import Administrator
from budget_service.stores.rollback_guard import Position
from gris_serving.options import add_operating_options, address_option
from gris_serving.security import add_security_options


def parser() -> argparse.ArgumentParser:
    """Return what reads the command line."""
    options = argparse.ArgumentParser("budget_service", description="A strict ledger of privacy budgets.")
    options.add_argument("--config", type=Path, required=True, help="budget.yaml")
    stores = options.add_mutually_exclusive_group()
    stores.add_argument(
        "--store",
        default="sqlite:ledger.db",
        help="sqlite:PATH, redis[s]://... or postgresql://...",
    )
    stores.add_argument(
        "--store-file", type=Path, help="a file with the store's address, for one that holds a password"
    )
    options.add_argument(
        "--listen", type=address_option, default="127.0.0.1:50052", help="HOST:PORT; port 0 takes a free one"
    )
    options.add_argument("--stop-with-stdin", action="store_true", help=argparse.SUPPRESS)
    options.add_argument(
        "--admin-listen",
        type=address_option,
        help="HOST:PORT for the administrator's service; without it there is none",
    )
    options.add_argument(
        "--region",
        type=Path,
        help="region.yaml: this is the service of a region, which borrows from a home ledger",
    )
    options.add_argument("--backups", type=Path, help="the folder for backups of a ledger in SQLite")
    marks = options.add_mutually_exclusive_group()
    marks.add_argument(
        "--mark",
        type=Path,
        help="the file of the high-water mark, kept apart from a remote store, to notice a restored backup",
    )
    marks.add_argument(
        "--no-mark", action="store_true", help="accept that nobody notices a restored backup; no warning then"
    )
    options.add_argument("--reflection", action="store_true", help="enable gRPC server reflection")
    accepting = options.add_mutually_exclusive_group()
    accepting.add_argument(
        "--confirm-restored",
        action="store_true",
        help="put a restored ledger into use: what was left of every open budget counts as spent; then exit",
    )
    accepting.add_argument(
        "--renew-mark",
        type=_position,
        metavar="LEDGER:COUNT",
        help="write a lost mark anew, if the ledger stands where the log of its last service says; then exit",
    )
    options.add_argument(
        "--spend-every-budget",
        action="store_true",
        help="with --confirm-restored: even if the ledger is not behind its high-water mark",
    )
    options.add_argument("--reason", default="", help="with --confirm-restored: why; it stays in the journal")
    add_operating_options(options)
    add_security_options(options)
    options.add_argument("--validate", action="store_true", help="only check the configuration and its files")
    return options


def _position(text: str) -> Position:
    try:
        return Position.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def require_reason(options: argparse.Namespace, configuration: Configuration) -> None:
    """Return if a restored ledger may be confirmed with this reason, or without one. Raises ConfigurationError."""
    if options.reason and not options.confirm_restored:
        raise ConfigurationError("--reason says why --confirm-restored is asked for: give both")
    if not options.confirm_restored:
        return
    try:
        Administrator("", configuration.administration.requires_reason).reason(options.reason)
    except InvalidFieldError as error:
        raise ConfigurationError(f"--reason: {error.problem}") from None


def store_address(options: argparse.Namespace) -> str:
    """Return the address of the store. Raises ConfigurationError if the file that holds it cannot be read."""
    if options.store_file is None:
        return str(options.store)
    try:
        address = Path(options.store_file).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ConfigurationError(f"--store-file {options.store_file}: {reason}") from None
    if not address or len(address.splitlines()) != 1:
        raise ConfigurationError(f"--store-file {options.store_file}: expected one line, the store's address")
    return address
