from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from gris_api.budget.v1 import budget_pb2 as _budget_pb2
from gris_api.common.v1 import cost_pb2 as _cost_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Period(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PERIOD_UNSPECIFIED: _ClassVar[Period]
    PERIOD_DAY: _ClassVar[Period]
    PERIOD_WEEK: _ClassVar[Period]
    PERIOD_MONTH: _ClassVar[Period]
    PERIOD_NEVER: _ClassVar[Period]
    PERIOD_SLIDING: _ClassVar[Period]

class ChargeKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CHARGE_KIND_UNSPECIFIED: _ClassVar[ChargeKind]
    CHARGE_KIND_SETTLED: _ClassVar[ChargeKind]
    CHARGE_KIND_DIRECT: _ClassVar[ChargeKind]
    CHARGE_KIND_FORFEITED: _ClassVar[ChargeKind]
    CHARGE_KIND_LOST: _ClassVar[ChargeKind]
    CHARGE_KIND_CURRENCY: _ClassVar[ChargeKind]
    CHARGE_KIND_CLOCK: _ClassVar[ChargeKind]
    CHARGE_KIND_REFUNDED: _ClassVar[ChargeKind]
    CHARGE_KIND_LIMIT: _ClassVar[ChargeKind]
    CHARGE_KIND_CLOSE: _ClassVar[ChargeKind]
    CHARGE_KIND_REOPEN: _ClassVar[ChargeKind]
PERIOD_UNSPECIFIED: Period
PERIOD_DAY: Period
PERIOD_WEEK: Period
PERIOD_MONTH: Period
PERIOD_NEVER: Period
PERIOD_SLIDING: Period
CHARGE_KIND_UNSPECIFIED: ChargeKind
CHARGE_KIND_SETTLED: ChargeKind
CHARGE_KIND_DIRECT: ChargeKind
CHARGE_KIND_FORFEITED: ChargeKind
CHARGE_KIND_LOST: ChargeKind
CHARGE_KIND_CURRENCY: ChargeKind
CHARGE_KIND_CLOCK: ChargeKind
CHARGE_KIND_REFUNDED: ChargeKind
CHARGE_KIND_LIMIT: ChargeKind
CHARGE_KIND_CLOSE: ChargeKind
CHARGE_KIND_REOPEN: ChargeKind

class Limit(_message.Message):
    __slots__ = ("information", "calls", "mode", "period", "sliding_days", "zone")
    INFORMATION_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    PERIOD_FIELD_NUMBER: _ClassVar[int]
    SLIDING_DAYS_FIELD_NUMBER: _ClassVar[int]
    ZONE_FIELD_NUMBER: _ClassVar[int]
    information: int
    calls: int
    mode: _budget_pb2.Mode
    period: Period
    sliding_days: int
    zone: str
    def __init__(self, information: _Optional[int] = ..., calls: _Optional[int] = ..., mode: _Optional[_Union[_budget_pb2.Mode, str]] = ..., period: _Optional[_Union[Period, str]] = ..., sliding_days: _Optional[int] = ..., zone: _Optional[str] = ...) -> None: ...

class LimitChange(_message.Message):
    __slots__ = ("path", "limit")
    PATH_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    path: _containers.RepeatedScalarFieldContainer[str]
    limit: Limit
    def __init__(self, path: _Optional[_Iterable[str]] = ..., limit: _Optional[_Union[Limit, _Mapping]] = ...) -> None: ...

class SetLimitsRequest(_message.Message):
    __slots__ = ("changes", "request_id", "reason")
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    changes: _containers.RepeatedCompositeFieldContainer[LimitChange]
    request_id: str
    reason: str
    def __init__(self, changes: _Optional[_Iterable[_Union[LimitChange, _Mapping]]] = ..., request_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class SetLimitsResponse(_message.Message):
    __slots__ = ("version", "replayed")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REPLAYED_FIELD_NUMBER: _ClassVar[int]
    version: int
    replayed: bool
    def __init__(self, version: _Optional[int] = ..., replayed: bool = ...) -> None: ...

class JournalEntry(_message.Message):
    __slots__ = ("account", "cost", "kind", "time", "request_id", "release_id", "query_id", "policy_statement", "shared_cost", "reason", "limit_before", "limit_after", "position", "actor")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    RELEASE_ID_FIELD_NUMBER: _ClassVar[int]
    QUERY_ID_FIELD_NUMBER: _ClassVar[int]
    POLICY_STATEMENT_FIELD_NUMBER: _ClassVar[int]
    SHARED_COST_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    LIMIT_BEFORE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_AFTER_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    account: _budget_pb2.Account
    cost: _cost_pb2.Cost
    kind: ChargeKind
    time: _timestamp_pb2.Timestamp
    request_id: str
    release_id: str
    query_id: str
    policy_statement: str
    shared_cost: _cost_pb2.Cost
    reason: str
    limit_before: Limit
    limit_after: Limit
    position: str
    actor: str
    def __init__(self, account: _Optional[_Union[_budget_pb2.Account, _Mapping]] = ..., cost: _Optional[_Union[_cost_pb2.Cost, _Mapping]] = ..., kind: _Optional[_Union[ChargeKind, str]] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., request_id: _Optional[str] = ..., release_id: _Optional[str] = ..., query_id: _Optional[str] = ..., policy_statement: _Optional[str] = ..., shared_cost: _Optional[_Union[_cost_pb2.Cost, _Mapping]] = ..., reason: _Optional[str] = ..., limit_before: _Optional[_Union[Limit, _Mapping]] = ..., limit_after: _Optional[_Union[Limit, _Mapping]] = ..., position: _Optional[str] = ..., actor: _Optional[str] = ...) -> None: ...

class ReadJournalRequest(_message.Message):
    __slots__ = ("under", "after", "at_most")
    UNDER_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    AT_MOST_FIELD_NUMBER: _ClassVar[int]
    under: _budget_pb2.Account
    after: str
    at_most: int
    def __init__(self, under: _Optional[_Union[_budget_pb2.Account, _Mapping]] = ..., after: _Optional[str] = ..., at_most: _Optional[int] = ...) -> None: ...

class ReadJournalResponse(_message.Message):
    __slots__ = ("entries", "last", "is_end", "trimmed")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    IS_END_FIELD_NUMBER: _ClassVar[int]
    TRIMMED_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[JournalEntry]
    last: str
    is_end: bool
    trimmed: int
    def __init__(self, entries: _Optional[_Iterable[_Union[JournalEntry, _Mapping]]] = ..., last: _Optional[str] = ..., is_end: bool = ..., trimmed: _Optional[int] = ...) -> None: ...

class VerifyLedgerRequest(_message.Message):
    __slots__ = ("account",)
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    account: _budget_pb2.Account
    def __init__(self, account: _Optional[_Union[_budget_pb2.Account, _Mapping]] = ...) -> None: ...

class Difference(_message.Message):
    __slots__ = ("path", "unit", "sum", "window_start", "kept", "rebuilt")
    PATH_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    SUM_FIELD_NUMBER: _ClassVar[int]
    WINDOW_START_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    REBUILT_FIELD_NUMBER: _ClassVar[int]
    path: _containers.RepeatedScalarFieldContainer[str]
    unit: str
    sum: str
    window_start: _timestamp_pb2.Timestamp
    kept: int
    rebuilt: int
    def __init__(self, path: _Optional[_Iterable[str]] = ..., unit: _Optional[str] = ..., sum: _Optional[str] = ..., window_start: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., kept: _Optional[int] = ..., rebuilt: _Optional[int] = ...) -> None: ...

class VerifyLedgerResponse(_message.Message):
    __slots__ = ("entries", "balances", "different", "differences")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    BALANCES_FIELD_NUMBER: _ClassVar[int]
    DIFFERENT_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCES_FIELD_NUMBER: _ClassVar[int]
    entries: int
    balances: int
    different: int
    differences: _containers.RepeatedCompositeFieldContainer[Difference]
    def __init__(self, entries: _Optional[int] = ..., balances: _Optional[int] = ..., different: _Optional[int] = ..., differences: _Optional[_Iterable[_Union[Difference, _Mapping]]] = ...) -> None: ...

class TrimJournalRequest(_message.Message):
    __slots__ = ("account", "exported", "reason")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    EXPORTED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    account: _budget_pb2.Account
    exported: str
    reason: str
    def __init__(self, account: _Optional[_Union[_budget_pb2.Account, _Mapping]] = ..., exported: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class TrimJournalResponse(_message.Message):
    __slots__ = ("entries", "dropped", "digest")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    entries: int
    dropped: int
    digest: str
    def __init__(self, entries: _Optional[int] = ..., dropped: _Optional[int] = ..., digest: _Optional[str] = ...) -> None: ...

class BackUpLedgerRequest(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class BackUpLedgerResponse(_message.Message):
    __slots__ = ("file", "bytes")
    FILE_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    file: str
    bytes: int
    def __init__(self, file: _Optional[str] = ..., bytes: _Optional[int] = ...) -> None: ...

class BeginCurrencyRequest(_message.Message):
    __slots__ = ("account", "unit_id", "request_id", "reason")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    UNIT_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    account: _budget_pb2.Account
    unit_id: str
    request_id: str
    reason: str
    def __init__(self, account: _Optional[_Union[_budget_pb2.Account, _Mapping]] = ..., unit_id: _Optional[str] = ..., request_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class BeginCurrencyResponse(_message.Message):
    __slots__ = ("begins_at", "replayed")
    BEGINS_AT_FIELD_NUMBER: _ClassVar[int]
    REPLAYED_FIELD_NUMBER: _ClassVar[int]
    begins_at: _timestamp_pb2.Timestamp
    replayed: bool
    def __init__(self, begins_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., replayed: bool = ...) -> None: ...

class ResumeClockRequest(_message.Message):
    __slots__ = ("account", "true_time", "request_id", "reason")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    TRUE_TIME_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    account: _budget_pb2.Account
    true_time: _timestamp_pb2.Timestamp
    request_id: str
    reason: str
    def __init__(self, account: _Optional[_Union[_budget_pb2.Account, _Mapping]] = ..., true_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., request_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class ResumeClockResponse(_message.Message):
    __slots__ = ("ahead", "replayed")
    AHEAD_FIELD_NUMBER: _ClassVar[int]
    REPLAYED_FIELD_NUMBER: _ClassVar[int]
    ahead: _duration_pb2.Duration
    replayed: bool
    def __init__(self, ahead: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., replayed: bool = ...) -> None: ...

class RefundChargeRequest(_message.Message):
    __slots__ = ("account", "release_id", "reason", "request_id")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    RELEASE_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    account: _budget_pb2.Account
    release_id: str
    reason: str
    request_id: str
    def __init__(self, account: _Optional[_Union[_budget_pb2.Account, _Mapping]] = ..., release_id: _Optional[str] = ..., reason: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class RefundChargeResponse(_message.Message):
    __slots__ = ("refunded", "replayed")
    REFUNDED_FIELD_NUMBER: _ClassVar[int]
    REPLAYED_FIELD_NUMBER: _ClassVar[int]
    refunded: _cost_pb2.Cost
    replayed: bool
    def __init__(self, refunded: _Optional[_Union[_cost_pb2.Cost, _Mapping]] = ..., replayed: bool = ...) -> None: ...

class CloseAccountRequest(_message.Message):
    __slots__ = ("account", "reason", "request_id")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    account: _budget_pb2.Account
    reason: str
    request_id: str
    def __init__(self, account: _Optional[_Union[_budget_pb2.Account, _Mapping]] = ..., reason: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class CloseAccountResponse(_message.Message):
    __slots__ = ("replayed",)
    REPLAYED_FIELD_NUMBER: _ClassVar[int]
    replayed: bool
    def __init__(self, replayed: bool = ...) -> None: ...

class ReopenAccountRequest(_message.Message):
    __slots__ = ("account", "reason", "request_id")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    account: _budget_pb2.Account
    reason: str
    request_id: str
    def __init__(self, account: _Optional[_Union[_budget_pb2.Account, _Mapping]] = ..., reason: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class ReopenAccountResponse(_message.Message):
    __slots__ = ("replayed",)
    REPLAYED_FIELD_NUMBER: _ClassVar[int]
    replayed: bool
    def __init__(self, replayed: bool = ...) -> None: ...
