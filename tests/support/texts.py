"""Parquet files of which one row could break a query: with texts that are not UTF-8, and with times."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

NOT_UTF8 = b"a\xff\xfe?\xc3b"


def write_rows(path: Path, rows: Iterable[Mapping[str, str | bytes]]) -> None:
    """Writes rows whose columns are all texts, some of them given as the bytes that they are."""
    listed = list(rows)
    write_texts(path, {name: [_bytes(row[name]) for row in listed] for name in listed[0]})


def write_times(path: Path, latest: int, stored: str) -> None:
    """Writes ten members with the element "x" and a time; `latest` is the last one's, in units of `stored`.

    Args:
        path: the Parquet file.
        latest: what one row has.
        stored: "ms", "us" or "int96", the last in microseconds.
    """
    ordinary = 1_711_584_000 * (1000 if stored == "ms" else 10**6)
    times = pa.array([ordinary] * 9 + [latest], pa.int64()).cast(
        pa.timestamp("ms" if stored == "ms" else "us")
    )
    rows = pa.table({"who": [f"m{number}" for number in range(10)], "what": ["x"] * 10, "at": times})
    pq.write_table(rows, path, use_deprecated_int96_timestamps=stored == "int96")


def write_texts(path: Path, columns: Mapping[str, Sequence[bytes | None]], **options: Any) -> None:
    """Writes columns of texts that are these bytes, with options of `pyarrow.parquet.write_table`."""
    table = pa.table({name: as_texts(values) for name, values in columns.items()})
    pq.write_table(table, path, **options)


def as_texts(values: Sequence[bytes | None]) -> Any:
    """Returns an Arrow array of texts that are these bytes; nothing looks at them."""
    array = pa.array(values, pa.binary())
    missing, offsets, content = array.buffers()
    return pa.StringArray.from_buffers(len(array), offsets, content, missing, array.null_count)


def state_type(path: Path, column: str, said: bytes) -> None:
    """Makes the footer say more of a column of bytes that may be missing; no writer here says it of odd bytes.

    Args:
        path: a Parquet file that was written without Arrow's schema.
        column: its name.
        said: the fields of its SchemaElement from the converted type on, in Thrift's compact protocol.
    """
    content = path.read_bytes()
    (length,) = struct.unpack("<I", content[-8:-4])
    rows, footer = content[: -8 - length], content[-8 - length : -8]
    # Type BYTE_ARRAY, repetition OPTIONAL, the name, and the end of the struct.
    element = bytes([0x15, 0x0C, 0x25, 0x02, 0x18, len(column)]) + column.encode()
    assert footer.count(element + b"\0") == 1
    footer = footer.replace(element + b"\0", element + said + b"\0")
    path.write_bytes(rows + footer + struct.pack("<I", len(footer)) + b"PAR1")


def _bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode()
