from google.protobuf import timestamp_pb2 as _timestamp_pb2
from gris_api.budget.v1 import budget_pb2 as _budget_pb2
from gris_api.common.v1 import cost_pb2 as _cost_pb2
from gris_api.dp.v1 import dp_pb2 as _dp_pb2
from gris_api.dp.v1 import question_pb2 as _question_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Sharing(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SHARING_UNSPECIFIED: _ClassVar[Sharing]
    SHARING_NONE: _ClassVar[Sharing]
    SHARING_WORST_CASES: _ClassVar[Sharing]
    SHARING_COSTS: _ClassVar[Sharing]
SHARING_UNSPECIFIED: Sharing
SHARING_NONE: Sharing
SHARING_WORST_CASES: Sharing
SHARING_COSTS: Sharing

class AskRequest(_message.Message):
    __slots__ = ("question", "account", "request_id", "confidence", "max_cost")
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    MAX_COST_FIELD_NUMBER: _ClassVar[int]
    question: _question_pb2.Question
    account: _budget_pb2.Account
    request_id: str
    confidence: float
    max_cost: int
    def __init__(self, question: _Optional[_Union[_question_pb2.Question, _Mapping]] = ..., account: _Optional[_Union[_budget_pb2.Account, _Mapping]] = ..., request_id: _Optional[str] = ..., confidence: _Optional[float] = ..., max_cost: _Optional[int] = ...) -> None: ...

class AskResponse(_message.Message):
    __slots__ = ("chunk", "end")
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    chunk: _dp_pb2.ShownElements
    end: Result
    def __init__(self, chunk: _Optional[_Union[_dp_pb2.ShownElements, _Mapping]] = ..., end: _Optional[_Union[Result, _Mapping]] = ...) -> None: ...

class Result(_message.Message):
    __slots__ = ("shown", "charged", "remaining", "replayed", "price")
    SHOWN_FIELD_NUMBER: _ClassVar[int]
    CHARGED_FIELD_NUMBER: _ClassVar[int]
    REMAINING_FIELD_NUMBER: _ClassVar[int]
    REPLAYED_FIELD_NUMBER: _ClassVar[int]
    PRICE_FIELD_NUMBER: _ClassVar[int]
    shown: _dp_pb2.Shown
    charged: _cost_pb2.Cost
    remaining: _containers.RepeatedCompositeFieldContainer[_budget_pb2.Level]
    replayed: bool
    price: ExplainResponse
    def __init__(self, shown: _Optional[_Union[_dp_pb2.Shown, _Mapping]] = ..., charged: _Optional[_Union[_cost_pb2.Cost, _Mapping]] = ..., remaining: _Optional[_Iterable[_Union[_budget_pb2.Level, _Mapping]]] = ..., replayed: bool = ..., price: _Optional[_Union[ExplainResponse, _Mapping]] = ...) -> None: ...

class ExplainRequest(_message.Message):
    __slots__ = ("question", "account")
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    question: _question_pb2.Question
    account: _budget_pb2.Account
    def __init__(self, question: _Optional[_Union[_question_pb2.Question, _Mapping]] = ..., account: _Optional[_Union[_budget_pb2.Account, _Mapping]] = ...) -> None: ...

class ExplainResponse(_message.Message):
    __slots__ = ("estimate", "shares")
    ESTIMATE_FIELD_NUMBER: _ClassVar[int]
    SHARES_FIELD_NUMBER: _ClassVar[int]
    estimate: _dp_pb2.Estimate
    shares: _containers.RepeatedCompositeFieldContainer[BudgetShare]
    def __init__(self, estimate: _Optional[_Union[_dp_pb2.Estimate, _Mapping]] = ..., shares: _Optional[_Iterable[_Union[BudgetShare, _Mapping]]] = ...) -> None: ...

class BudgetShare(_message.Message):
    __slots__ = ("path", "unit", "cost", "limit", "remaining", "mode")
    PATH_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    REMAINING_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    path: _containers.RepeatedScalarFieldContainer[str]
    unit: str
    cost: int
    limit: int
    remaining: int
    mode: _budget_pb2.Mode
    def __init__(self, path: _Optional[_Iterable[str]] = ..., unit: _Optional[str] = ..., cost: _Optional[int] = ..., limit: _Optional[int] = ..., remaining: _Optional[int] = ..., mode: _Optional[_Union[_budget_pb2.Mode, str]] = ...) -> None: ...

class GetRemainingRequest(_message.Message):
    __slots__ = ("account",)
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    account: _budget_pb2.Account
    def __init__(self, account: _Optional[_Union[_budget_pb2.Account, _Mapping]] = ...) -> None: ...

class GetRemainingResponse(_message.Message):
    __slots__ = ("account", "levels")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    LEVELS_FIELD_NUMBER: _ClassVar[int]
    account: _budget_pb2.Account
    levels: _containers.RepeatedCompositeFieldContainer[_budget_pb2.Level]
    def __init__(self, account: _Optional[_Union[_budget_pb2.Account, _Mapping]] = ..., levels: _Optional[_Iterable[_Union[_budget_pb2.Level, _Mapping]]] = ...) -> None: ...

class GetGuaranteeRequest(_message.Message):
    __slots__ = ("account", "domains")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    DOMAINS_FIELD_NUMBER: _ClassVar[int]
    account: _budget_pb2.Account
    domains: _containers.RepeatedCompositeFieldContainer[_dp_pb2.PublishedDomain]
    def __init__(self, account: _Optional[_Union[_budget_pb2.Account, _Mapping]] = ..., domains: _Optional[_Iterable[_Union[_dp_pb2.PublishedDomain, _Mapping]]] = ...) -> None: ...

class BudgetGuarantee(_message.Message):
    __slots__ = ("path", "limit", "worth")
    PATH_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    WORTH_FIELD_NUMBER: _ClassVar[int]
    path: _containers.RepeatedScalarFieldContainer[str]
    limit: _cost_pb2.Cost
    worth: _dp_pb2.BudgetWorth
    def __init__(self, path: _Optional[_Iterable[str]] = ..., limit: _Optional[_Union[_cost_pb2.Cost, _Mapping]] = ..., worth: _Optional[_Union[_dp_pb2.BudgetWorth, _Mapping]] = ...) -> None: ...

class GetGuaranteeResponse(_message.Message):
    __slots__ = ("account", "own", "shared", "sharing")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    OWN_FIELD_NUMBER: _ClassVar[int]
    SHARED_FIELD_NUMBER: _ClassVar[int]
    SHARING_FIELD_NUMBER: _ClassVar[int]
    account: _budget_pb2.Account
    own: BudgetGuarantee
    shared: BudgetGuarantee
    sharing: Sharing
    def __init__(self, account: _Optional[_Union[_budget_pb2.Account, _Mapping]] = ..., own: _Optional[_Union[BudgetGuarantee, _Mapping]] = ..., shared: _Optional[_Union[BudgetGuarantee, _Mapping]] = ..., sharing: _Optional[_Union[Sharing, str]] = ...) -> None: ...

class GetCatalogRequest(_message.Message):
    __slots__ = ("table", "page_size", "page_token")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    table: str
    page_size: int
    page_token: str
    def __init__(self, table: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class GetCatalogResponse(_message.Message):
    __slots__ = ("page",)
    PAGE_FIELD_NUMBER: _ClassVar[int]
    page: _dp_pb2.GetCatalogResponse
    def __init__(self, page: _Optional[_Union[_dp_pb2.GetCatalogResponse, _Mapping]] = ...) -> None: ...

class ListReleasesRequest(_message.Message):
    __slots__ = ("account", "page_size", "page_token")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    account: _budget_pb2.Account
    page_size: int
    page_token: str
    def __init__(self, account: _Optional[_Union[_budget_pb2.Account, _Mapping]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListReleasesResponse(_message.Message):
    __slots__ = ("releases", "next_page_token")
    RELEASES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    releases: _containers.RepeatedCompositeFieldContainer[PastRelease]
    next_page_token: str
    def __init__(self, releases: _Optional[_Iterable[_Union[PastRelease, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class PastRelease(_message.Message):
    __slots__ = ("released_at", "question", "request_id", "elements", "elements_omitted", "result", "confidence", "not_offered")
    RELEASED_AT_FIELD_NUMBER: _ClassVar[int]
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ELEMENTS_FIELD_NUMBER: _ClassVar[int]
    ELEMENTS_OMITTED_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    NOT_OFFERED_FIELD_NUMBER: _ClassVar[int]
    released_at: _timestamp_pb2.Timestamp
    question: _question_pb2.Question
    request_id: str
    elements: _dp_pb2.ShownElements
    elements_omitted: bool
    result: Result
    confidence: float
    not_offered: bool
    def __init__(self, released_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., question: _Optional[_Union[_question_pb2.Question, _Mapping]] = ..., request_id: _Optional[str] = ..., elements: _Optional[_Union[_dp_pb2.ShownElements, _Mapping]] = ..., elements_omitted: bool = ..., result: _Optional[_Union[Result, _Mapping]] = ..., confidence: _Optional[float] = ..., not_offered: bool = ...) -> None: ...
