from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class Cost(_message.Message):
    __slots__ = ("information", "calls", "unit_id", "blocks")
    INFORMATION_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    UNIT_ID_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    information: int
    calls: int
    unit_id: str
    blocks: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, information: _Optional[int] = ..., calls: _Optional[int] = ..., unit_id: _Optional[str] = ..., blocks: _Optional[_Iterable[str]] = ...) -> None: ...
