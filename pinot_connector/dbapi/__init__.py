"""PEP 249 (DB-API 2.0) over private questions: a program that uses pinotdb changes its connect line.

    connection = connect("localhost", 8099, controller="http://localhost:9000",
                         dp="localhost:50051", budget="localhost:50052", account="app/acme/ana")
    cursor = connection.cursor()
    cursor.execute("SELECT country, COUNT(DISTINCT member_id) AS members FROM visits "
                   "WHERE device = %(device)s GROUP BY country ORDER BY members DESC LIMIT 10", {"device": "phone"})

Every `execute` is a question that has been paid for when it returns. Like the rest of the connector, this is trusted
code.
"""

from pinot_connector.dbapi.connecting import connect, connect_embedded, connect_gateway
from pinot_connector.dbapi.connection import Connection
from pinot_connector.dbapi.cursor import Cursor
from pinot_connector.dbapi.errors import (
    BudgetExhaustedError,
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,  # noqa: A004 - PEP 249's name
)
from pinot_connector.dbapi.types import (
    BINARY,
    BOOLEAN,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)
from pinot_connector.release_store import ReleaseFile

apilevel = "2.0"
# Threads may share the module and connections; a cursor belongs to one thread at a time.
threadsafety = 2
paramstyle = "pyformat"

__all__ = [
    "BINARY",
    "BOOLEAN",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "BudgetExhaustedError",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "ReleaseFile",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "connect_embedded",
    "connect_gateway",
    "paramstyle",
    "threadsafety",
]
