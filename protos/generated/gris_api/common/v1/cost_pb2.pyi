from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class Cost(_message.Message):
    __slots__ = ("information", "calls", "unit_id")
    INFORMATION_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    UNIT_ID_FIELD_NUMBER: _ClassVar[int]
    information: int
    calls: int
    unit_id: str
    def __init__(self, information: _Optional[int] = ..., calls: _Optional[int] = ..., unit_id: _Optional[str] = ...) -> None: ...
