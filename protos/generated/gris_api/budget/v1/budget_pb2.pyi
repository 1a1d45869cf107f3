from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from gris_api.common.v1 import cost_pb2 as _cost_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Mode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MODE_UNSPECIFIED: _ClassVar[Mode]
    MODE_ENFORCE: _ClassVar[Mode]
    MODE_TRACK: _ClassVar[Mode]
MODE_UNSPECIFIED: Mode
MODE_ENFORCE: Mode
MODE_TRACK: Mode

class Account(_message.Message):
    __slots__ = ("path",)
    PATH_FIELD_NUMBER: _ClassVar[int]
    path: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, path: _Optional[_Iterable[str]] = ...) -> None: ...

class Level(_message.Message):
    __slots__ = ("path", "limit", "spent", "reserved", "remaining", "mode", "window_start", "window_end", "worst_case", "policy_statements", "over_limit", "previous_currency", "largest_limit", "remaining_of_blocks")
    PATH_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    SPENT_FIELD_NUMBER: _ClassVar[int]
    RESERVED_FIELD_NUMBER: _ClassVar[int]
    REMAINING_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    WINDOW_START_FIELD_NUMBER: _ClassVar[int]
    WINDOW_END_FIELD_NUMBER: _ClassVar[int]
    WORST_CASE_FIELD_NUMBER: _ClassVar[int]
    POLICY_STATEMENTS_FIELD_NUMBER: _ClassVar[int]
    OVER_LIMIT_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_CURRENCY_FIELD_NUMBER: _ClassVar[int]
    LARGEST_LIMIT_FIELD_NUMBER: _ClassVar[int]
    REMAINING_OF_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    path: _containers.RepeatedScalarFieldContainer[str]
    limit: _cost_pb2.Cost
    spent: _cost_pb2.Cost
    reserved: _cost_pb2.Cost
    remaining: _cost_pb2.Cost
    mode: Mode
    window_start: _timestamp_pb2.Timestamp
    window_end: _timestamp_pb2.Timestamp
    worst_case: bool
    policy_statements: _containers.RepeatedScalarFieldContainer[str]
    over_limit: bool
    previous_currency: bool
    largest_limit: _cost_pb2.Cost
    remaining_of_blocks: _containers.RepeatedCompositeFieldContainer[_cost_pb2.Cost]
    def __init__(self, path: _Optional[_Iterable[str]] = ..., limit: _Optional[_Union[_cost_pb2.Cost, _Mapping]] = ..., spent: _Optional[_Union[_cost_pb2.Cost, _Mapping]] = ..., reserved: _Optional[_Union[_cost_pb2.Cost, _Mapping]] = ..., remaining: _Optional[_Union[_cost_pb2.Cost, _Mapping]] = ..., mode: _Optional[_Union[Mode, str]] = ..., window_start: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., window_end: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., worst_case: bool = ..., policy_statements: _Optional[_Iterable[str]] = ..., over_limit: bool = ..., previous_currency: bool = ..., largest_limit: _Optional[_Union[_cost_pb2.Cost, _Mapping]] = ..., remaining_of_blocks: _Optional[_Iterable[_Union[_cost_pb2.Cost, _Mapping]]] = ...) -> None: ...

class Shortfall(_message.Message):
    __slots__ = ("path", "unit", "requested", "remaining", "refreshes_at")
    PATH_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_FIELD_NUMBER: _ClassVar[int]
    REMAINING_FIELD_NUMBER: _ClassVar[int]
    REFRESHES_AT_FIELD_NUMBER: _ClassVar[int]
    path: _containers.RepeatedScalarFieldContainer[str]
    unit: str
    requested: int
    remaining: int
    refreshes_at: _timestamp_pb2.Timestamp
    def __init__(self, path: _Optional[_Iterable[str]] = ..., unit: _Optional[str] = ..., requested: _Optional[int] = ..., remaining: _Optional[int] = ..., refreshes_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class CheckBudgetRequest(_message.Message):
    __slots__ = ("account", "cost")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    account: Account
    cost: _cost_pb2.Cost
    def __init__(self, account: _Optional[_Union[Account, _Mapping]] = ..., cost: _Optional[_Union[_cost_pb2.Cost, _Mapping]] = ...) -> None: ...

class CheckBudgetResponse(_message.Message):
    __slots__ = ("allowed", "shortfalls", "closed_level", "held")
    ALLOWED_FIELD_NUMBER: _ClassVar[int]
    SHORTFALLS_FIELD_NUMBER: _ClassVar[int]
    CLOSED_LEVEL_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    allowed: bool
    shortfalls: _containers.RepeatedCompositeFieldContainer[Shortfall]
    closed_level: _containers.RepeatedScalarFieldContainer[str]
    held: bool
    def __init__(self, allowed: bool = ..., shortfalls: _Optional[_Iterable[_Union[Shortfall, _Mapping]]] = ..., closed_level: _Optional[_Iterable[str]] = ..., held: bool = ...) -> None: ...

class ReserveBudgetRequest(_message.Message):
    __slots__ = ("account", "max_cost", "query_id", "request_id", "ttl")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    MAX_COST_FIELD_NUMBER: _ClassVar[int]
    QUERY_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    account: Account
    max_cost: _cost_pb2.Cost
    query_id: str
    request_id: str
    ttl: _duration_pb2.Duration
    def __init__(self, account: _Optional[_Union[Account, _Mapping]] = ..., max_cost: _Optional[_Union[_cost_pb2.Cost, _Mapping]] = ..., query_id: _Optional[str] = ..., request_id: _Optional[str] = ..., ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class ReserveBudgetResponse(_message.Message):
    __slots__ = ("reservation_id", "held", "expires_at", "already_paid", "replayed")
    RESERVATION_ID_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    ALREADY_PAID_FIELD_NUMBER: _ClassVar[int]
    REPLAYED_FIELD_NUMBER: _ClassVar[int]
    reservation_id: str
    held: _cost_pb2.Cost
    expires_at: _timestamp_pb2.Timestamp
    already_paid: bool
    replayed: bool
    def __init__(self, reservation_id: _Optional[str] = ..., held: _Optional[_Union[_cost_pb2.Cost, _Mapping]] = ..., expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., already_paid: bool = ..., replayed: bool = ...) -> None: ...

class UpdateBudgetRequest(_message.Message):
    __slots__ = ("account", "cost", "request_id", "reservation_id", "release_id", "charge_ticket", "query_id", "policy_statement", "further")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    RESERVATION_ID_FIELD_NUMBER: _ClassVar[int]
    RELEASE_ID_FIELD_NUMBER: _ClassVar[int]
    CHARGE_TICKET_FIELD_NUMBER: _ClassVar[int]
    QUERY_ID_FIELD_NUMBER: _ClassVar[int]
    POLICY_STATEMENT_FIELD_NUMBER: _ClassVar[int]
    FURTHER_FIELD_NUMBER: _ClassVar[int]
    account: Account
    cost: _cost_pb2.Cost
    request_id: str
    reservation_id: str
    release_id: str
    charge_ticket: bytes
    query_id: str
    policy_statement: str
    further: _containers.RepeatedCompositeFieldContainer[FurtherCharge]
    def __init__(self, account: _Optional[_Union[Account, _Mapping]] = ..., cost: _Optional[_Union[_cost_pb2.Cost, _Mapping]] = ..., request_id: _Optional[str] = ..., reservation_id: _Optional[str] = ..., release_id: _Optional[str] = ..., charge_ticket: _Optional[bytes] = ..., query_id: _Optional[str] = ..., policy_statement: _Optional[str] = ..., further: _Optional[_Iterable[_Union[FurtherCharge, _Mapping]]] = ...) -> None: ...

class FurtherCharge(_message.Message):
    __slots__ = ("cost", "release_id", "charge_ticket", "query_id", "policy_statement")
    COST_FIELD_NUMBER: _ClassVar[int]
    RELEASE_ID_FIELD_NUMBER: _ClassVar[int]
    CHARGE_TICKET_FIELD_NUMBER: _ClassVar[int]
    QUERY_ID_FIELD_NUMBER: _ClassVar[int]
    POLICY_STATEMENT_FIELD_NUMBER: _ClassVar[int]
    cost: _cost_pb2.Cost
    release_id: str
    charge_ticket: bytes
    query_id: str
    policy_statement: str
    def __init__(self, cost: _Optional[_Union[_cost_pb2.Cost, _Mapping]] = ..., release_id: _Optional[str] = ..., charge_ticket: _Optional[bytes] = ..., query_id: _Optional[str] = ..., policy_statement: _Optional[str] = ...) -> None: ...

class UpdateBudgetResponse(_message.Message):
    __slots__ = ("charged", "already_paid", "replayed", "levels", "charged_each")
    CHARGED_FIELD_NUMBER: _ClassVar[int]
    ALREADY_PAID_FIELD_NUMBER: _ClassVar[int]
    REPLAYED_FIELD_NUMBER: _ClassVar[int]
    LEVELS_FIELD_NUMBER: _ClassVar[int]
    CHARGED_EACH_FIELD_NUMBER: _ClassVar[int]
    charged: _cost_pb2.Cost
    already_paid: bool
    replayed: bool
    levels: _containers.RepeatedCompositeFieldContainer[Level]
    charged_each: _containers.RepeatedCompositeFieldContainer[_cost_pb2.Cost]
    def __init__(self, charged: _Optional[_Union[_cost_pb2.Cost, _Mapping]] = ..., already_paid: bool = ..., replayed: bool = ..., levels: _Optional[_Iterable[_Union[Level, _Mapping]]] = ..., charged_each: _Optional[_Iterable[_Union[_cost_pb2.Cost, _Mapping]]] = ...) -> None: ...

class ReleaseReservationRequest(_message.Message):
    __slots__ = ("account", "reservation_id", "request_id")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    RESERVATION_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    account: Account
    reservation_id: str
    request_id: str
    def __init__(self, account: _Optional[_Union[Account, _Mapping]] = ..., reservation_id: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class ReleaseReservationResponse(_message.Message):
    __slots__ = ("returned", "replayed")
    RETURNED_FIELD_NUMBER: _ClassVar[int]
    REPLAYED_FIELD_NUMBER: _ClassVar[int]
    returned: _cost_pb2.Cost
    replayed: bool
    def __init__(self, returned: _Optional[_Union[_cost_pb2.Cost, _Mapping]] = ..., replayed: bool = ...) -> None: ...

class GetBudgetRequest(_message.Message):
    __slots__ = ("account", "with_policy_statements", "with_region_shares", "blocks", "without_levels")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    WITH_POLICY_STATEMENTS_FIELD_NUMBER: _ClassVar[int]
    WITH_REGION_SHARES_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_LEVELS_FIELD_NUMBER: _ClassVar[int]
    account: Account
    with_policy_statements: bool
    with_region_shares: bool
    blocks: _containers.RepeatedScalarFieldContainer[str]
    without_levels: bool
    def __init__(self, account: _Optional[_Union[Account, _Mapping]] = ..., with_policy_statements: bool = ..., with_region_shares: bool = ..., blocks: _Optional[_Iterable[str]] = ..., without_levels: bool = ...) -> None: ...

class GetBudgetResponse(_message.Message):
    __slots__ = ("levels", "unit_id", "next_unit_id", "next_unit_begins_at", "clock_ahead", "closed_level", "region_shares", "lapsed_shares")
    LEVELS_FIELD_NUMBER: _ClassVar[int]
    UNIT_ID_FIELD_NUMBER: _ClassVar[int]
    NEXT_UNIT_ID_FIELD_NUMBER: _ClassVar[int]
    NEXT_UNIT_BEGINS_AT_FIELD_NUMBER: _ClassVar[int]
    CLOCK_AHEAD_FIELD_NUMBER: _ClassVar[int]
    CLOSED_LEVEL_FIELD_NUMBER: _ClassVar[int]
    REGION_SHARES_FIELD_NUMBER: _ClassVar[int]
    LAPSED_SHARES_FIELD_NUMBER: _ClassVar[int]
    levels: _containers.RepeatedCompositeFieldContainer[Level]
    unit_id: str
    next_unit_id: str
    next_unit_begins_at: _timestamp_pb2.Timestamp
    clock_ahead: _duration_pb2.Duration
    closed_level: _containers.RepeatedScalarFieldContainer[str]
    region_shares: _containers.RepeatedCompositeFieldContainer[RegionShare]
    lapsed_shares: _containers.RepeatedCompositeFieldContainer[RegionShare]
    def __init__(self, levels: _Optional[_Iterable[_Union[Level, _Mapping]]] = ..., unit_id: _Optional[str] = ..., next_unit_id: _Optional[str] = ..., next_unit_begins_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., clock_ahead: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., closed_level: _Optional[_Iterable[str]] = ..., region_shares: _Optional[_Iterable[_Union[RegionShare, _Mapping]]] = ..., lapsed_shares: _Optional[_Iterable[_Union[RegionShare, _Mapping]]] = ...) -> None: ...

class RegionShare(_message.Message):
    __slots__ = ("region", "held", "ends_at")
    REGION_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    ENDS_AT_FIELD_NUMBER: _ClassVar[int]
    region: str
    held: _cost_pb2.Cost
    ends_at: _timestamp_pb2.Timestamp
    def __init__(self, region: _Optional[str] = ..., held: _Optional[_Union[_cost_pb2.Cost, _Mapping]] = ..., ends_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
