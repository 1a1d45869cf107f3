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

class NotLent(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NOT_LENT_UNSPECIFIED: _ClassVar[NotLent]
    NOT_LENT_TOO_LARGE: _ClassVar[NotLent]
    NOT_LENT_NOT_SUPPORTED: _ClassVar[NotLent]
    NOT_LENT_REFUSED: _ClassVar[NotLent]
    NOT_LENT_SET_BACK: _ClassVar[NotLent]
    NOT_LENT_COPIED: _ClassVar[NotLent]
NOT_LENT_UNSPECIFIED: NotLent
NOT_LENT_TOO_LARGE: NotLent
NOT_LENT_NOT_SUPPORTED: NotLent
NOT_LENT_REFUSED: NotLent
NOT_LENT_SET_BACK: NotLent
NOT_LENT_COPIED: NotLent

class BorrowBudgetRequest(_message.Message):
    __slots__ = ("account", "region", "instance", "lease_id", "wanted", "own", "own_window_start", "last_lease_id", "before")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    REGION_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    WANTED_FIELD_NUMBER: _ClassVar[int]
    OWN_FIELD_NUMBER: _ClassVar[int]
    OWN_WINDOW_START_FIELD_NUMBER: _ClassVar[int]
    LAST_LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    account: _budget_pb2.Account
    region: str
    instance: str
    lease_id: str
    wanted: _cost_pb2.Cost
    own: _cost_pb2.Cost
    own_window_start: _timestamp_pb2.Timestamp
    last_lease_id: str
    before: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, account: _Optional[_Union[_budget_pb2.Account, _Mapping]] = ..., region: _Optional[str] = ..., instance: _Optional[str] = ..., lease_id: _Optional[str] = ..., wanted: _Optional[_Union[_cost_pb2.Cost, _Mapping]] = ..., own: _Optional[_Union[_cost_pb2.Cost, _Mapping]] = ..., own_window_start: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_lease_id: _Optional[str] = ..., before: _Optional[_Iterable[str]] = ...) -> None: ...

class BorrowBudgetResponse(_message.Message):
    __slots__ = ("not_lent", "share", "granted_at", "ends_at", "window_start", "window_end", "is_sole", "levels")
    NOT_LENT_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    GRANTED_AT_FIELD_NUMBER: _ClassVar[int]
    ENDS_AT_FIELD_NUMBER: _ClassVar[int]
    WINDOW_START_FIELD_NUMBER: _ClassVar[int]
    WINDOW_END_FIELD_NUMBER: _ClassVar[int]
    IS_SOLE_FIELD_NUMBER: _ClassVar[int]
    LEVELS_FIELD_NUMBER: _ClassVar[int]
    not_lent: NotLent
    share: _cost_pb2.Cost
    granted_at: _timestamp_pb2.Timestamp
    ends_at: _timestamp_pb2.Timestamp
    window_start: _timestamp_pb2.Timestamp
    window_end: _timestamp_pb2.Timestamp
    is_sole: bool
    levels: _containers.RepeatedCompositeFieldContainer[_budget_pb2.Level]
    def __init__(self, not_lent: _Optional[_Union[NotLent, str]] = ..., share: _Optional[_Union[_cost_pb2.Cost, _Mapping]] = ..., granted_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ends_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., window_start: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., window_end: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., is_sole: bool = ..., levels: _Optional[_Iterable[_Union[_budget_pb2.Level, _Mapping]]] = ...) -> None: ...

class ReportedCharge(_message.Message):
    __slots__ = ("account", "lease_id", "number", "cost", "release_id", "query_id", "policy_statement", "request_id")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    RELEASE_ID_FIELD_NUMBER: _ClassVar[int]
    QUERY_ID_FIELD_NUMBER: _ClassVar[int]
    POLICY_STATEMENT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    account: _budget_pb2.Account
    lease_id: str
    number: int
    cost: _cost_pb2.Cost
    release_id: str
    query_id: str
    policy_statement: str
    request_id: str
    def __init__(self, account: _Optional[_Union[_budget_pb2.Account, _Mapping]] = ..., lease_id: _Optional[str] = ..., number: _Optional[int] = ..., cost: _Optional[_Union[_cost_pb2.Cost, _Mapping]] = ..., release_id: _Optional[str] = ..., query_id: _Optional[str] = ..., policy_statement: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class ReportChargesRequest(_message.Message):
    __slots__ = ("region", "instance", "charges", "before")
    REGION_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    CHARGES_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    region: str
    instance: str
    charges: _containers.RepeatedCompositeFieldContainer[ReportedCharge]
    before: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, region: _Optional[str] = ..., instance: _Optional[str] = ..., charges: _Optional[_Iterable[_Union[ReportedCharge, _Mapping]]] = ..., before: _Optional[_Iterable[str]] = ...) -> None: ...

class RecordedCharge(_message.Message):
    __slots__ = ("charged", "is_known")
    CHARGED_FIELD_NUMBER: _ClassVar[int]
    IS_KNOWN_FIELD_NUMBER: _ClassVar[int]
    charged: _cost_pb2.Cost
    is_known: bool
    def __init__(self, charged: _Optional[_Union[_cost_pb2.Cost, _Mapping]] = ..., is_known: bool = ...) -> None: ...

class ReportChargesResponse(_message.Message):
    __slots__ = ("charges", "is_copied")
    CHARGES_FIELD_NUMBER: _ClassVar[int]
    IS_COPIED_FIELD_NUMBER: _ClassVar[int]
    charges: _containers.RepeatedCompositeFieldContainer[RecordedCharge]
    is_copied: bool
    def __init__(self, charges: _Optional[_Iterable[_Union[RecordedCharge, _Mapping]]] = ..., is_copied: bool = ...) -> None: ...

class ReturnBudgetRequest(_message.Message):
    __slots__ = ("account", "region", "instance", "lease_id", "reported", "was_granted", "before", "charged")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    REGION_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    REPORTED_FIELD_NUMBER: _ClassVar[int]
    WAS_GRANTED_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    CHARGED_FIELD_NUMBER: _ClassVar[int]
    account: _budget_pb2.Account
    region: str
    instance: str
    lease_id: str
    reported: int
    was_granted: bool
    before: _containers.RepeatedScalarFieldContainer[str]
    charged: _cost_pb2.Cost
    def __init__(self, account: _Optional[_Union[_budget_pb2.Account, _Mapping]] = ..., region: _Optional[str] = ..., instance: _Optional[str] = ..., lease_id: _Optional[str] = ..., reported: _Optional[int] = ..., was_granted: bool = ..., before: _Optional[_Iterable[str]] = ..., charged: _Optional[_Union[_cost_pb2.Cost, _Mapping]] = ...) -> None: ...

class ReturnBudgetResponse(_message.Message):
    __slots__ = ("was_held", "returned")
    WAS_HELD_FIELD_NUMBER: _ClassVar[int]
    RETURNED_FIELD_NUMBER: _ClassVar[int]
    was_held: bool
    returned: _cost_pb2.Cost
    def __init__(self, was_held: bool = ..., returned: _Optional[_Union[_cost_pb2.Cost, _Mapping]] = ...) -> None: ...
