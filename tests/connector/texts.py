"""Parquet files with texts that are not UTF-8, which no careful writer makes."""

from __future__ import annotations

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


def write_texts(path: Path, columns: Mapping[str, Sequence[bytes | None]], **options: Any) -> None:
    """Writes columns of texts that are these bytes, with options of `pyarrow.parquet.write_table`."""
    table = pa.table({name: as_texts(values) for name, values in columns.items()})
    pq.write_table(table, path, **options)


def as_texts(values: Sequence[bytes | None]) -> Any:
    """Returns an Arrow array of texts that are these bytes; nothing looks at them."""
    array = pa.array(values, pa.binary())
    missing, offsets, content = array.buffers()
    return pa.StringArray.from_buffers(len(array), offsets, content, missing, array.null_count)


def _bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode()
