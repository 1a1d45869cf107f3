"""The dialect `gris`. It asks by `pinot_connector.dbapi` and describes tables from the catalogue.

SQLAlchemy probes a database when it connects: version, schema, isolation, encodings. Here each statement would be a
question, so nothing is probed. Reflection and `do_ping` call the gateway outside of SQL: they reserve and charge
nothing, and no engine hears of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Final

from sqlalchemy import String, exc
from sqlalchemy.engine import URL, Engine
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.sql.compiler import IdentifierPreparer, SQLCompiler

from pinot_connector import dbapi
from pinot_connector.catalog import Catalog, TableEntry
from pinot_connector.gateway_client import SCHEME
from pinot_connector.sqlalchemy.reflection import (
    reflected_columns,
    table_comment,
    table_metrics,
    table_named,
)

# Tools that want a schema are given one; SQL never names it.
SCHEMA = "default"
AUTOCOMMIT: Final = "AUTOCOMMIT"
_CATALOG = ("gris", "catalog")


def _no_schema(_: object) -> Any:
    return None


class _Identifiers(IdentifierPreparer):
    """Quotes every name: a quoted name is never a word of SQL, whatever policies call their columns."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # The accepted SQL has no schemas, neither before tables nor before columns.
        self.schema_for_object = _no_schema

    def _requires_quotes(self, value: str) -> bool:
        return True


class _Compiler(SQLCompiler):
    """Writes ILIKE as such: a function of a column, which stands for it elsewhere, has no private meaning."""

    def visit_ilike_op_binary(self, binary: Any, operator: Any, **options: Any) -> str:
        return self._ilike(binary, "ILIKE", **options)

    def visit_not_ilike_op_binary(self, binary: Any, operator: Any, **options: Any) -> str:
        return self._ilike(binary, "NOT ILIKE", **options)

    def _ilike(self, binary: Any, word: str, **options: Any) -> str:
        written = f"{self.process(binary.left, **options)} {word} {self.process(binary.right, **options)}"
        escape = binary.modifiers.get("escape")
        # It is no word of the accepted SQL, and must not be lost.
        return (
            written if escape is None else f"{written} ESCAPE {self.render_literal_value(escape, String())}"
        )


class GrisDialect(DefaultDialect):
    """SQLAlchemy's dialect for a gateway; see `docs/sqlalchemy.md`."""

    name = "gris"
    driver = "gateway"
    default_paramstyle = "pyformat"
    preparer = _Identifiers
    statement_compiler = _Compiler
    supports_statement_cache = True
    supports_native_boolean = True
    supports_alter = False
    supports_comments = True
    supports_default_values = False
    supports_sane_multi_rowcount = False
    postfetch_lastrowid = False
    # SQLAlchemy 1.4 would ask the database these two things.
    returns_unicode_strings = True
    description_encoding = None

    def __init__(self, isolation_level: str | None = None, **options: Any) -> None:
        """Takes the level here, for SQLAlchemy 1.4 leaves it to dialects; it sets nothing."""
        super().__init__(**options)
        if isolation_level is not None:
            self.set_isolation_level(None, isolation_level)

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        """Returns the DB-API module; for SQLAlchemy 2."""
        return dbapi

    @classmethod
    def dbapi(cls) -> ModuleType:  # type: ignore[override]
        """Returns the DB-API module; for SQLAlchemy 1.4."""
        return dbapi

    @classmethod
    def engine_created(cls, engine: Engine) -> None:
        """Keeps values of questions out of SQLAlchemy's own error texts and logs."""
        engine.hide_parameters = True

    def create_connect_args(self, url: URL) -> Any:
        """Returns the arguments of `dbapi.connect`, which reads the URL."""
        return (), {"url": url.set(drivername=SCHEME).render_as_string(hide_password=False)}

    def initialize(self, connection: Any) -> None:
        """Asks nothing of the database."""
        self.server_version_info = None
        self.default_schema_name = SCHEMA
        self.default_isolation_level = AUTOCOMMIT

    def get_isolation_level_values(self, dbapi_conn: Any) -> Any:
        """Returns the one that there is: a question is paid for when it is executed."""
        return [AUTOCOMMIT]

    def get_isolation_level(self, dbapi_connection: Any) -> Any:
        """Returns the one that there is."""
        return AUTOCOMMIT

    def set_isolation_level(self, dbapi_connection: Any, level: Any) -> None:
        """Sets nothing; raises ArgumentError for a level of transactions, which there are not."""
        if level != AUTOCOMMIT:
            raise exc.ArgumentError(f"isolation_level: expected {AUTOCOMMIT}, for there are no transactions")

    def do_ping(self, dbapi_connection: Any) -> bool:
        """Reads the budget, which shows that gateway, credentials and account are right; nothing is charged."""
        dbapi_connection.remaining()
        return True

    def do_rollback(self, dbapi_connection: Any) -> None:
        """Does nothing: what has been shown is paid for, and there is nothing else to take back."""

    def is_disconnect(self, e: Any, connection: Any, cursor: Any) -> bool:
        """Returns whether a connection is closed; one to a gateway that went away finds it again by itself."""
        return isinstance(e, dbapi.InterfaceError) and connection is not None and connection.closed

    def get_schema_names(self, connection: Any, **kw: Any) -> list[str]:
        """Returns the one schema that there is."""
        return [SCHEMA]

    def get_table_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        """Returns the tables that the policy shows."""
        if schema not in (None, SCHEMA):
            return []
        return [table.name for table in self._catalog(connection, **kw).tables]

    def has_table(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> bool:
        """Returns whether the policy shows a table."""
        return table_name in self.get_table_names(connection, schema, **kw)

    def get_columns(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        """Returns the columns that the policy shows, with what they may be used for as comments."""
        return list(reflected_columns(self._table(connection, table_name, schema, **kw)))

    def get_table_comment(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> Any:
        """Returns what may be counted in a table."""
        return {"text": table_comment(self._table(connection, table_name, schema, **kw))}

    def get_table_options(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> Any:
        """Returns what may be asked of a table, as it is written in SQL, by names: `gris_metrics`."""
        table = self._table(connection, table_name, schema, **kw)
        return {"gris_metrics": table_metrics(table)}

    def get_view_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        """Returns none."""
        return []

    def get_pk_constraint(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> Any:
        """Returns that there is none."""
        return {"constrained_columns": [], "name": None}

    def get_foreign_keys(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        """Returns none."""
        return []

    def get_indexes(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        """Returns none."""
        return []

    def get_unique_constraints(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        """Returns none."""
        return []

    def get_check_constraints(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        """Returns none."""
        return []

    def _catalog(self, connection: Any, **kw: Any) -> Catalog:
        """Returns the catalogue, read once for each inspector; `reflection.cache` of 1.4 takes no annotations."""
        cache: dict[Any, Catalog] = kw.get("info_cache", {})
        if _CATALOG not in cache:
            with self._translated():
                cache[_CATALOG] = connection.connection.dbapi_connection.catalog()
        return cache[_CATALOG]

    def _table(self, connection: Any, name: str, schema: str | None, **kw: Any) -> TableEntry:
        table = table_named(self._catalog(connection, **kw), name) if schema in (None, SCHEMA) else None
        if table is None:
            raise exc.NoSuchTableError(name)
        return table

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Raises errors as SQLAlchemy's own, as it does itself where a statement fails."""
        try:
            yield
        except dbapi.Error as error:
            raise exc.DBAPIError.instance(None, None, error, dbapi.Error, dialect=self) from error
