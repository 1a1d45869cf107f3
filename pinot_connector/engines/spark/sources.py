"""The tables of the engine: the location of each, and the version of its data.

The version is a hash over the list of files: path, length and time of change, as the file system reports them. No file
is read for it. Object stores and HDFS replace whole files and date them themselves, so other data have another list.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import unquote

from pyspark.sql import DataFrame, DataFrameReader, SparkSession

from pinot_connector.errors import EngineRefused

CATALOG = "catalog:"

# How a table of the catalogue may be stored. In other formats the files do not show which rows are valid.
_ORC = "orc"
_FORMATS = frozenset(("parquet", _ORC))
TIMESTAMP_TYPES = frozenset(("timestamp", "timestamp_ntz"))
"""Spark's types of moments, with and without a zone."""

# A column of a Parquet file's schema as a text, in units of which Spark makes microseconds.
_COARSE = re.compile(r"^ *\w+ int64 (.+) \(TIMESTAMP\(MILLIS,", re.MULTILINE)
_FOOTERS_AT_ONCE = 8


class Source(ABC):
    """A table of Spark's."""

    @abstractmethod
    def open(self, session: SparkSession) -> DataFrame:
        """Returns its rows as they are now; nothing that Spark has cached is used."""

    @abstractmethod
    def version(self, session: SparkSession) -> str:
        """Returns `files:` and a hash of the list of its files."""

    def breakable(self, session: SparkSession) -> frozenset[str]:
        """Returns, casefolded, the names of columns of timestamps in which one value can make Spark fail.

        These are timestamps that are stored in other units than Spark's microseconds: the largest do not fit. How each
        file stores them is in its schema; no row is read. A column that only shares its name with such a part of
        another one is taken for one too.

        Raises:
            EngineRefused: the session is one of Spark Connect, which shows no file's schema.
        """
        return _coarse_timestamps(session, self.open(session).inputFiles())


@dataclass(frozen=True)
class Files(Source):
    """A Parquet file, or a directory of them."""

    path: str

    def open(self, session: SparkSession) -> DataFrame:
        """See `Source.open`."""
        return _reader(session).parquet(self.path)

    def version(self, session: SparkSession) -> str:
        """See `Source.version`."""
        return _listed(session, [self.path])


@dataclass(frozen=True)
class CatalogTable(Source):
    """A table of Spark's catalogue that is stored as Parquet or ORC."""

    name: str

    def open(self, session: SparkSession) -> DataFrame:
        """Returns its rows; see `Source.open`.

        Raises:
            EngineRefused: the table is stored in another format.
        """
        if self._format(session) not in _FORMATS:
            raise EngineRefused("the engine answers from tables of the catalogue in Parquet and ORC only")
        return _reader(session).table(self.name)

    def breakable(self, session: SparkSession) -> frozenset[str]:
        """See `Source.breakable`. ORC stores seconds, whatever its columns are called."""
        if self._format(session) != _ORC:
            return super().breakable(session)
        return frozenset(
            field.name.casefold()
            for field in self.open(session).schema.fields
            if field.dataType.simpleString() in TIMESTAMP_TYPES
        )

    def _format(self, session: SparkSession) -> str:
        described = session.sql(f"DESCRIBE TABLE EXTENDED {self.name}").collect()
        return {row["col_name"]: str(row["data_type"]).lower() for row in described}.get("Provider", "")

    def version(self, session: SparkSession) -> str:
        """See `Source.version`."""
        # Spark writes them as URIs, and reads them as paths.
        files = sorted(map(unquote, self.open(session).inputFiles()))
        return _listed(session, files)


def source_of(text: str) -> Source:
    """Returns the table at a path, or, after `catalog:`, of that name in Spark's catalogue.

    Raises:
        EngineRefused: it names nothing.
    """
    named = text.removeprefix(CATALOG)
    if not named.strip():
        raise EngineRefused("a table is a path to Parquet, or catalog:NAME for a table of Spark's catalogue")
    return CatalogTable(named) if text.startswith(CATALOG) else Files(named)


def require_plain_texts(rows: DataFrame) -> None:
    """Checks that texts are different if any of their characters is.

    Raises:
        EngineRefused: a column has a collation, or a type that fills texts up with spaces.
    """
    for column in rows.schema.fields:
        stored = str(column.metadata.get("__CHAR_VARCHAR_TYPE_STRING", ""))
        if "collate" in column.dataType.simpleString() or stored.startswith("char"):
            raise EngineRefused("the table has texts with a collation or of type CHAR: use plain STRING")


def require_unbreakable(columns: Iterable[str], breakable: frozenset[str]) -> None:
    """Checks that none of these columns of timestamps is among those of `Source.breakable`.

    Raises:
        EngineRefused: one is.
    """
    for name in columns:
        if name.casefold() in breakable:
            raise EngineRefused(
                f"the column {name} of the table holds a type that one row can break, as timestamps in milliseconds "
                "and those of ORC are: write them in Parquet, as TIMESTAMP(MICROS)"
            )


def _reader(session: SparkSession) -> DataFrameReader:
    """Returns a reader that fails at files that are gone or broken, whatever the table's own properties say.

    Spark keeps what an application caches for all sessions, by how it was read. With an option that nobody else uses, a
    read never matches the cache, from which Spark would answer without looking at the files.
    """
    options = {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false", "gris": uuid.uuid4().hex}
    return session.read.options(**options)


def _coarse_timestamps(session: SparkSession, files: Sequence[str]) -> frozenset[str]:
    """Returns the names of columns that one of these Parquet files stores as timestamps in milliseconds."""
    # Spark's own schema has no units, so the library is asked by which Spark reads the footers.
    jvm = getattr(session, "_jvm", None)
    if jvm is None:
        raise EngineRefused(
            "Spark Connect does not show how files store timestamps, and one row in milliseconds could fail the query: "
            "use another session than one of Spark Connect, or a column of integers with a unit in the policy"
        )
    configuration = session._jsparkSession.sessionState().newHadoopConf()
    parquet = jvm.org.apache.parquet

    def schema(file: str) -> str:
        path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(file))
        without_rows = parquet.format.converter.ParquetMetadataConverter.SKIP_ROW_GROUPS
        footer = parquet.hadoop.ParquetFileReader.readFooter(configuration, path, without_rows)
        return str(footer.getFileMetaData().getSchema().toString())

    with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as threads:
        schemas = threads.map(schema, files)
        return frozenset(name.casefold() for text in schemas for name in _COARSE.findall(text))


def _listed(session: SparkSession, paths: Sequence[str]) -> str:
    """Returns the hash of all files at the paths; their content is not read, because its column is not selected."""
    reader = session.read.format("binaryFile").option("recursiveFileLookup", "true")
    files = reader.load(list(paths)) if paths else None
    entries = (
        [] if files is None else files.selectExpr("path", "length", "unix_micros(modificationTime)").collect()
    )
    digest = hashlib.sha256()
    for entry in sorted(map(tuple, entries)):
        digest.update(f"{len(entry[0])} {entry[0]} {entry[1]} {entry[2]}\n".encode())
    return f"files:{digest.hexdigest()}"
