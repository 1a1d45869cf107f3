"""The members of an etcd cluster: whom to ask, and what the absence of an answer means.

A read may be asked again of another member. A write is sent once, on a connection that stands; what becomes of it when
no answer comes is not known. gRPC retries nothing. All reads are linearizable: a member that is cut off from the
majority cannot answer them, however many revisions it has missed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import grpc
from aetcd.rpc import rpc_pb2, rpc_pb2_grpc

from budget_service.stores.etcd.address import Address, Endpoint
from budget_service.stores.interface import OutcomeUnknownError, StoreUnavailableError, StoreUnusableError
from budget_service.tuning import Tuning

# etcd takes no more operations in one transaction, unless it is started with another bound.
MAX_OPERATIONS = 128
LEAST_VERSION = (3, 4)
# A member that is paused answers nothing: so much later the next one is asked too.
HEDGE_SECONDS = 0.05
MAX_ANSWER_BYTES = 64 * 2**20
OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_receive_message_length", MAX_ANSWER_BYTES),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    # etcd hangs up on whom it hears more often than every five seconds.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 3_000),
)
# What etcd says before it has done anything.
_REFUSALS = frozenset(
    {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.UNIMPLEMENTED,
    }
)
_OLD_TOKENS = ("invalid auth token", "revision of auth store is old")
NO_SPACE = (
    "etcd is out of space (alarm NOSPACE): archive journals, compact, defragment, then disarm the alarm"
)
_ANOTHER_CLUSTER = "the members in the address of etcd are not of one cluster"

# A key or prefix, with whatever else a range has.
Range: TypeAlias = Any
KeyValues: TypeAlias = list[Any]


class RefusedError(StoreUnavailableError):
    """etcd has refused a request and done nothing.

    Attributes:
        code: The code of its answer.
        details: Its text, one of etcd's constants.
    """

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        said = details if details.startswith("etcdserver:") else code.name
        super().__init__(NO_SPACE if "space exceeded" in details else f"etcd refused: {said}")
        self.code, self.details = code, details


@dataclass(frozen=True, slots=True)
class Found:
    """What ranges had at one revision: key-values and their number for each."""

    revision: int
    ranges: list[KeyValues]
    counts: list[int]


@dataclass(eq=False, slots=True)
class Member:
    """One member and the connection to it; it `is_known` once it has answered as part of the cluster."""

    endpoint: Endpoint
    channel: grpc.aio.Channel
    is_known: bool = False
    kv: Any = field(init=False)
    maintenance: Any = field(init=False)
    auth: Any = field(init=False)

    def __post_init__(self) -> None:
        self.kv = rpc_pb2_grpc.KVStub(self.channel)
        self.maintenance = rpc_pb2_grpc.MaintenanceStub(self.channel)
        self.auth = rpc_pb2_grpc.AuthStub(self.channel)

    @property
    def is_connected(self) -> bool:
        """Return whether the connection stands; if not, it is being made."""
        return self.channel.get_state(try_to_connect=True) is grpc.ChannelConnectivity.READY

    async def connected(self) -> None:
        """Return when the connection stands."""
        while (state := self.channel.get_state(try_to_connect=True)) is not grpc.ChannelConnectivity.READY:
            await self.channel.wait_for_state_change(state)


class Members:
    """The members of one cluster, the one that answered last first."""

    def __init__(self, address: Address, tuning: Tuning) -> None:
        self._user, self._password = address.user, address.password
        self._seconds = tuning.etcd_answer_seconds
        self._connect_seconds = tuning.etcd_connect_seconds
        credentials = address.credentials()
        self._members = [Member(each, _channel(each, credentials)) for each in address.endpoints]
        self._token: str | None = None
        self._renewing = asyncio.Lock()
        self._cluster_id: int | None = None

    async def read(self, ranges: Sequence[Range], *, revision: int = 0) -> Found:
        """Return what some ranges have, all at one revision: the newest, or an earlier one.

        Raises:
            StoreUnavailableError: No member has answered.
        """
        found = Found(revision, [], [])
        for start in range(0, len(ranges), MAX_OPERATIONS):
            part = ranges[start : start + MAX_OPERATIONS]
            for each in part:
                each.revision = found.revision
            request = rpc_pb2.TxnRequest(success=[rpc_pb2.RequestOp(request_range=each) for each in part])
            answer = await self._asked_of_any(request)
            responses = [each.response_range for each in answer.responses]
            found = Found(
                found.revision or answer.header.revision,
                found.ranges + [list(each.kvs) for each in responses],
                found.counts + [each.count for each in responses],
            )
        return found

    async def write(self, transaction: Any) -> Any:
        """Send a transaction once and return etcd's answer.

        Raises:
            RefusedError: etcd has not done it.
            StoreUnavailableError: It was not sent.
            OutcomeUnknownError: No answer came.
        """
        member = await self._connected([each for each in self._members if each.is_known])
        try:
            return await self._ask(member, member.kv.Txn, transaction, self._seconds)
        except OutcomeUnknownError:
            self._distrust(member)
            raise

    async def compact(self, revision: int) -> None:
        """Forget the history before a revision; somebody else may have done so. Raises StoreUnavailableError."""
        member = await self._connected(self._members)
        try:
            await self._ask(
                member, member.kv.Compact, rpc_pb2.CompactionRequest(revision=revision), self._seconds
            )
        except RefusedError as error:
            if error.code is not grpc.StatusCode.OUT_OF_RANGE:
                raise
        except OutcomeUnknownError as error:
            raise StoreUnavailableError(str(error)) from None

    async def alarms(self) -> list[int]:
        """Return the alarms that are raised, by their numbers. Raises StoreUnavailableError."""
        request = rpc_pb2.AlarmRequest(action=rpc_pb2.AlarmRequest.GET)
        member = await self._connected(self._members)
        try:
            answer = await self._ask(member, member.maintenance.Alarm, request, self._seconds)
        except OutcomeUnknownError as error:
            self._distrust(member)
            raise StoreUnavailableError(str(error)) from None
        return [each.alarm for each in answer.alarms]

    async def require_version(self) -> None:
        """Return if a member has the API that is used here, else raise a StoreError."""
        member = await self._connected(self._members)
        try:
            answer = await self._ask(
                member, member.maintenance.Status, rpc_pb2.StatusRequest(), self._seconds
            )
        except OutcomeUnknownError as error:
            self._distrust(member)
            raise StoreUnavailableError(str(error)) from None
        version = tuple(int(part) for part in answer.version.split(".")[:2] if part.isdecimal())
        if version < LEAST_VERSION:
            raise StoreUnusableError("this etcd is older than version 3.4")

    async def ping(self, key: bytes) -> None:
        """Return as soon as any member answers for the majority; it is asked first from then on.

        Each member gets a little time before the next one is asked as well. Raises StoreUnavailableError.
        """
        request = rpc_pb2.TxnRequest(
            success=[rpc_pb2.RequestOp(request_range=rpc_pb2.RangeRequest(key=key, count_only=True))]
        )
        asked: dict[asyncio.Task[Any], Member] = {}
        try:
            for member in list(self._members):
                asked[asyncio.create_task(self._ask(member, member.kv.Txn, request, self._seconds))] = member
                await asyncio.wait(asked, timeout=HEDGE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                if self._trust_any(asked):
                    return
            while any(not each.done() for each in asked):
                waiting = [each for each in asked if not each.done()]
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                if self._trust_any(asked):
                    return
            for task in asked:
                # What etcd has refused is no silence.
                if isinstance(task.exception(), StoreUnavailableError | StoreUnusableError):
                    task.result()
            raise StoreUnavailableError("no member of etcd answers for the majority")
        finally:
            for task in asked:
                task.cancel()
            await asyncio.gather(*asked, return_exceptions=True)

    async def close(self) -> None:
        """Close every connection."""
        await asyncio.gather(*(each.channel.close() for each in self._members))

    def _trust_any(self, asked: dict[asyncio.Task[Any], Member]) -> bool:
        for task, member in asked.items():
            if task.done() and not task.cancelled() and task.exception() is None:
                # It stays in its place among the others, which are asked in turn.
                while self._members[0] is not member:
                    self._members.append(self._members.pop(0))
                return True
        return False

    async def _asked_of_any(self, request: Any) -> Any:
        tried: list[Member] = []
        error: Exception = StoreUnavailableError("no member of etcd can be reached")
        end = asyncio.get_running_loop().time() + self._seconds
        while left := [each for each in self._members if each not in tried]:
            try:
                member = await self._connected(left)
            except StoreUnavailableError:
                break
            tried.append(member)
            # A member that is silent must leave the others some time.
            seconds = max(0.05, (end - asyncio.get_running_loop().time()) / len(left))
            try:
                return await self._ask(member, member.kv.Txn, request, seconds)
            except OutcomeUnknownError as lost:
                self._distrust(member)
                error = lost
        raise StoreUnavailableError(str(error)) from None

    async def _connected(self, members: Sequence[Member]) -> Member:
        """Return the first of these members that is connected. Raises StoreUnavailableError."""
        for member in members:
            if member.is_connected:
                return member
        waiting = [asyncio.create_task(each.connected()) for each in members]
        if waiting:
            try:
                await asyncio.wait(
                    waiting, timeout=self._connect_seconds, return_when=asyncio.FIRST_COMPLETED
                )
            finally:
                for task in waiting:
                    task.cancel()
                await asyncio.gather(*waiting, return_exceptions=True)
        for member in members:
            if member.is_connected:
                return member
        raise StoreUnavailableError("no member of etcd can be reached")

    def _distrust(self, member: Member) -> None:
        if self._members[0] is member:
            self._members.append(self._members.pop(0))

    async def _ask(self, member: Member, method: Any, request: Any, seconds: float) -> Any:
        try:
            answer = await self._with_token(member, method, request, seconds)
        except grpc.aio.AioRpcError as error:
            code, details = error.code(), error.details() or ""
            if code in _REFUSALS:
                raise RefusedError(code, details) from None
            raise OutcomeUnknownError(f"etcd hung up or gave no answer: {code.name}") from None
        self._require_one_cluster(answer.header.cluster_id)
        member.is_known = True
        return answer

    async def _with_token(self, member: Member, method: Any, request: Any, seconds: float) -> Any:
        if self._user and self._token is None:
            await self._renew_token(member, None, seconds)
        token = self._token
        try:
            return await method(request, timeout=seconds, metadata=self._metadata())
        except grpc.aio.AioRpcError as error:
            if not (self._user and any(each in (error.details() or "") for each in _OLD_TOKENS)):
                raise
        # Nothing was done for a token that etcd does not know (any more).
        await self._renew_token(member, token, seconds)
        return await method(request, timeout=seconds, metadata=self._metadata())

    async def _renew_token(self, member: Member, old: str | None, seconds: float) -> None:
        """Get another token than the old one; of many that need one, the first one does."""
        async with self._renewing:
            if self._token == old:
                await self._authenticate(member, seconds)

    async def _authenticate(self, member: Member, seconds: float) -> None:
        request = rpc_pb2.AuthenticateRequest(name=self._user, password=self._password)
        try:
            self._token = (await member.auth.Authenticate(request, timeout=seconds)).token
        except grpc.aio.AioRpcError as error:
            details = error.details() or ""
            if "authentication is not enabled" in details:
                raise StoreUnusableError(
                    "the address of etcd has a user and a password, and authentication is not enabled there"
                ) from None
            if "authentication failed" in details:
                raise StoreUnusableError(
                    "etcd does not accept the user and password of the address"
                ) from None
            raise StoreUnavailableError(f"etcd does not authenticate: {error.code().name}") from None

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        return () if self._token is None else (("token", self._token),)

    def _require_one_cluster(self, found: int) -> None:
        if self._cluster_id is None:
            self._cluster_id = found or None
        # Some answers do not tell.
        if found and found != self._cluster_id:
            # If it was a write, nobody may take it for one to the ledger.
            raise OutcomeUnknownError(_ANOTHER_CLUSTER)


def _channel(endpoint: Endpoint, credentials: grpc.ChannelCredentials | None) -> grpc.aio.Channel:
    if credentials is None:
        return grpc.aio.insecure_channel(endpoint.target, options=OPTIONS)
    return grpc.aio.secure_channel(endpoint.target, credentials, options=OPTIONS)


def range_of(key: bytes, **more: Any) -> Range:
    """Return the range of one key."""
    return rpc_pb2.RangeRequest(key=key, **more)


def range_between(first: bytes, end: bytes, **more: Any) -> Range:
    """Return the range of the keys from the first one to before the end."""
    return rpc_pb2.RangeRequest(key=first, range_end=end, **more)


def put(key: bytes, value: bytes) -> Any:
    """Return the operation that writes a value."""
    return rpc_pb2.RequestOp(request_put=rpc_pb2.PutRequest(key=key, value=value))


def delete(key: bytes, end: bytes = b"") -> Any:
    """Return the operation that removes a key, or all from it to before the end."""
    return rpc_pb2.RequestOp(request_delete_range=rpc_pb2.DeleteRangeRequest(key=key, range_end=end))


def unchanged(key: bytes, revision: int) -> Any:
    """Return the comparison that holds while a key has its last change at a revision, 0 while it is not there."""
    return rpc_pb2.Compare(
        result=rpc_pb2.Compare.EQUAL, target=rpc_pb2.Compare.MOD, key=key, mod_revision=revision
    )
