from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Measure(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MEASURE_UNSPECIFIED: _ClassVar[Measure]
    MEASURE_DISTINCT_MEMBERS: _ClassVar[Measure]
    MEASURE_EVENTS: _ClassVar[Measure]
    MEASURE_DISTINCT_VALUES: _ClassVar[Measure]
MEASURE_UNSPECIFIED: Measure
MEASURE_DISTINCT_MEMBERS: Measure
MEASURE_EVENTS: Measure
MEASURE_DISTINCT_VALUES: Measure

class Question(_message.Message):
    __slots__ = ("structured", "sql", "audience")
    STRUCTURED_FIELD_NUMBER: _ClassVar[int]
    SQL_FIELD_NUMBER: _ClassVar[int]
    AUDIENCE_FIELD_NUMBER: _ClassVar[int]
    structured: HistogramQuery
    sql: str
    audience: Audience
    def __init__(self, structured: _Optional[_Union[HistogramQuery, _Mapping]] = ..., sql: _Optional[str] = ..., audience: _Optional[_Union[Audience, _Mapping]] = ...) -> None: ...

class Audience(_message.Message):
    __slots__ = ("name", "values")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    name: str
    values: _containers.RepeatedCompositeFieldContainer[AudienceValue]
    def __init__(self, name: _Optional[str] = ..., values: _Optional[_Iterable[_Union[AudienceValue, _Mapping]]] = ...) -> None: ...

class AudienceValue(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class HistogramQuery(_message.Message):
    __slots__ = ("table", "dimensions", "measure", "distinct_of", "filters", "condition", "time_range", "k")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    DIMENSIONS_FIELD_NUMBER: _ClassVar[int]
    MEASURE_FIELD_NUMBER: _ClassVar[int]
    DISTINCT_OF_FIELD_NUMBER: _ClassVar[int]
    FILTERS_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    TIME_RANGE_FIELD_NUMBER: _ClassVar[int]
    K_FIELD_NUMBER: _ClassVar[int]
    table: str
    dimensions: _containers.RepeatedScalarFieldContainer[str]
    measure: Measure
    distinct_of: str
    filters: _containers.RepeatedCompositeFieldContainer[Filter]
    condition: str
    time_range: TimeRange
    k: int
    def __init__(self, table: _Optional[str] = ..., dimensions: _Optional[_Iterable[str]] = ..., measure: _Optional[_Union[Measure, str]] = ..., distinct_of: _Optional[str] = ..., filters: _Optional[_Iterable[_Union[Filter, _Mapping]]] = ..., condition: _Optional[str] = ..., time_range: _Optional[_Union[TimeRange, _Mapping]] = ..., k: _Optional[int] = ...) -> None: ...

class Filter(_message.Message):
    __slots__ = ("column", "not_in", "range")
    COLUMN_FIELD_NUMBER: _ClassVar[int]
    IN_FIELD_NUMBER: _ClassVar[int]
    NOT_IN_FIELD_NUMBER: _ClassVar[int]
    RANGE_FIELD_NUMBER: _ClassVar[int]
    column: str
    not_in: ValueSet
    range: ValueRange
    def __init__(self, column: _Optional[str] = ..., not_in: _Optional[_Union[ValueSet, _Mapping]] = ..., range: _Optional[_Union[ValueRange, _Mapping]] = ..., **kwargs) -> None: ...

class ValueSet(_message.Message):
    __slots__ = ("values",)
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedCompositeFieldContainer[Value]
    def __init__(self, values: _Optional[_Iterable[_Union[Value, _Mapping]]] = ...) -> None: ...

class ValueRange(_message.Message):
    __slots__ = ("lower", "upper")
    LOWER_FIELD_NUMBER: _ClassVar[int]
    UPPER_FIELD_NUMBER: _ClassVar[int]
    lower: Bound
    upper: Bound
    def __init__(self, lower: _Optional[_Union[Bound, _Mapping]] = ..., upper: _Optional[_Union[Bound, _Mapping]] = ...) -> None: ...

class Bound(_message.Message):
    __slots__ = ("value", "exclusive")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    EXCLUSIVE_FIELD_NUMBER: _ClassVar[int]
    value: Value
    exclusive: bool
    def __init__(self, value: _Optional[_Union[Value, _Mapping]] = ..., exclusive: bool = ...) -> None: ...

class Value(_message.Message):
    __slots__ = ("string", "int64", "bool", "date", "timestamp")
    STRING_FIELD_NUMBER: _ClassVar[int]
    INT64_FIELD_NUMBER: _ClassVar[int]
    BOOL_FIELD_NUMBER: _ClassVar[int]
    DATE_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    string: str
    int64: int
    bool: bool
    date: int
    timestamp: _timestamp_pb2.Timestamp
    def __init__(self, string: _Optional[str] = ..., int64: _Optional[int] = ..., bool: bool = ..., date: _Optional[int] = ..., timestamp: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class TimeRange(_message.Message):
    __slots__ = ("from_day", "to", "to_day")
    FROM_FIELD_NUMBER: _ClassVar[int]
    FROM_DAY_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    TO_DAY_FIELD_NUMBER: _ClassVar[int]
    from_day: int
    to: _timestamp_pb2.Timestamp
    to_day: int
    def __init__(self, from_day: _Optional[int] = ..., to: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., to_day: _Optional[int] = ..., **kwargs) -> None: ...
