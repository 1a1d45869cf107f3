from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ColumnType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COLUMN_TYPE_UNSPECIFIED: _ClassVar[ColumnType]
    COLUMN_TYPE_STRING: _ClassVar[ColumnType]
    COLUMN_TYPE_INT64: _ClassVar[ColumnType]
    COLUMN_TYPE_BOOL: _ClassVar[ColumnType]
    COLUMN_TYPE_DATE: _ClassVar[ColumnType]
    COLUMN_TYPE_TIMESTAMP: _ClassVar[ColumnType]
COLUMN_TYPE_UNSPECIFIED: ColumnType
COLUMN_TYPE_STRING: ColumnType
COLUMN_TYPE_INT64: ColumnType
COLUMN_TYPE_BOOL: ColumnType
COLUMN_TYPE_DATE: ColumnType
COLUMN_TYPE_TIMESTAMP: ColumnType

class Column(_message.Message):
    __slots__ = ("name", "type", "alias")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    ALIAS_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: ColumnType
    alias: str
    def __init__(self, name: _Optional[str] = ..., type: _Optional[_Union[ColumnType, str]] = ..., alias: _Optional[str] = ...) -> None: ...

class StringValues(_message.Message):
    __slots__ = ("values",)
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, values: _Optional[_Iterable[str]] = ...) -> None: ...

class Int64Values(_message.Message):
    __slots__ = ("values",)
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, values: _Optional[_Iterable[int]] = ...) -> None: ...

class BoolValues(_message.Message):
    __slots__ = ("values",)
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedScalarFieldContainer[bool]
    def __init__(self, values: _Optional[_Iterable[bool]] = ...) -> None: ...

class DateValues(_message.Message):
    __slots__ = ("days",)
    DAYS_FIELD_NUMBER: _ClassVar[int]
    days: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, days: _Optional[_Iterable[int]] = ...) -> None: ...

class ElementColumn(_message.Message):
    __slots__ = ("name", "strings", "int64s", "bools", "dates")
    NAME_FIELD_NUMBER: _ClassVar[int]
    STRINGS_FIELD_NUMBER: _ClassVar[int]
    INT64S_FIELD_NUMBER: _ClassVar[int]
    BOOLS_FIELD_NUMBER: _ClassVar[int]
    DATES_FIELD_NUMBER: _ClassVar[int]
    name: str
    strings: StringValues
    int64s: Int64Values
    bools: BoolValues
    dates: DateValues
    def __init__(self, name: _Optional[str] = ..., strings: _Optional[_Union[StringValues, _Mapping]] = ..., int64s: _Optional[_Union[Int64Values, _Mapping]] = ..., bools: _Optional[_Union[BoolValues, _Mapping]] = ..., dates: _Optional[_Union[DateValues, _Mapping]] = ...) -> None: ...

class Histogram(_message.Message):
    __slots__ = ("columns", "counts", "first_counts", "sums")
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    FIRST_COUNTS_FIELD_NUMBER: _ClassVar[int]
    SUMS_FIELD_NUMBER: _ClassVar[int]
    columns: _containers.RepeatedCompositeFieldContainer[ElementColumn]
    counts: _containers.RepeatedScalarFieldContainer[int]
    first_counts: _containers.RepeatedScalarFieldContainer[int]
    sums: _containers.RepeatedCompositeFieldContainer[CentredSums]
    def __init__(self, columns: _Optional[_Iterable[_Union[ElementColumn, _Mapping]]] = ..., counts: _Optional[_Iterable[int]] = ..., first_counts: _Optional[_Iterable[int]] = ..., sums: _Optional[_Iterable[_Union[CentredSums, _Mapping]]] = ...) -> None: ...

class CentredSums(_message.Message):
    __slots__ = ("values",)
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, values: _Optional[_Iterable[int]] = ...) -> None: ...
