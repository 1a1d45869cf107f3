"""The scripts that run in Redis, each put together from files in `lua/`, and how they are run."""

from __future__ import annotations

import hashlib
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from redis.exceptions import NoScriptError, ResponseError

from budget_service.ledger.values import Account
from budget_service.stores.interface import OutcomeUnknownError, StoreDamagedError, StoreUnavailableError
from budget_service.stores.redis.layout import name_in_root
from budget_service.stores.redis.pipeline import NOBODY, PipelinedConnection
from budget_service.stores.redis.schema import SCHEMA, SCHEMA_KEY

LUA = Path(__file__).parent / "lua"
PARTLY = "GRISPARTLY"
DAMAGED = "GRISDAMAGED "
WRONG_TYPE = "WRONGTYPE"


class Script:
    """A script and the name Redis knows it by."""

    def __init__(self, *files: str) -> None:
        self.source = "\n".join((LUA / file).read_text(encoding="utf-8") for file in files)
        self.digest = hashlib.sha1(self.source.encode(), usedforsecurity=False).hexdigest()


# Those that begin with `schema.lua` are run by `of_schema`.
READ = Script("schema.lua", "damage.lua", "clock.lua", "read.lua")
WRITE = Script("schema.lua", "damage.lua", "clock.lua", "write.lua")
COUNT = Script("count.lua")
DROP_TRIMMED = Script("schema.lua", "drop_trimmed.lua")


class Scripts:
    """Runs scripts and commands on a pipelined connection."""

    def __init__(self, pipeline: PipelinedConnection) -> None:
        self._pipeline = pipeline

    async def run(
        self, script: Script, keys: list[str], *values: str | bytes, account: Account = NOBODY
    ) -> Any:
        """Return the answer of a script.

        Raises:
            StoreDamagedError: It met a key that cannot be right, and had no effect.
            StoreUnavailableError: It had no effect.
            OutcomeUnknownError: It may have had one.
        """
        parameters = (str(len(keys)), *keys, *values)
        try:
            try:
                return await self._pipeline.ask("EVALSHA", script.digest, *parameters, account=account)
            except NoScriptError:
                # Redis was restarted, or never saw the script; it has run nothing.
                return await self._pipeline.ask("EVAL", script.source, *parameters, account=account)
        except ResponseError as error:
            if str(error).startswith(PARTLY):
                raise OutcomeUnknownError(_safe_text(error)) from error
            if str(error).startswith(DAMAGED):
                raise _damage(str(error).removeprefix(DAMAGED)) from None
            # Other errors come before the first write: out of memory, loading, read-only, disk full.
            raise StoreUnavailableError(_safe_text(error)) from error

    async def of_schema(
        self, script: Script, keys: list[str], *values: str | bytes, account: Account = NOBODY
    ) -> Any:
        """Return the answer of a script that refuses a ledger of another schema; see `run`."""
        return await self.run(script, [*keys, SCHEMA_KEY], *values, SCHEMA, account=account)

    async def read(self, command: str, key: str, *values: str) -> Any:
        """Return the answer of a command that reads a key. Raises StoreUnavailableError or StoreDamagedError."""
        try:
            return await reading(self._pipeline.ask(command, key, *values))
        except StoreUnavailableError as error:
            if WRONG_TYPE in str(error):
                raise _damage(key) from None
            raise


async def reading(exchange: Coroutine[Any, Any, Any]) -> Any:
    """Return an answer whose loss leaves nothing unknown. Raises StoreUnavailableError."""
    try:
        return await exchange
    except (OutcomeUnknownError, ResponseError) as error:
        raise StoreUnavailableError(_safe_text(error)) from error


def _damage(key: str) -> StoreDamagedError:
    return StoreDamagedError(name_in_root(key).removeprefix("row:").partition("\t")[0], key)


def _safe_text(error: Exception) -> str:
    # Redis quotes a command that it does not know, and its keys contain account names.
    return str(error).partition(", with args")[0]
