"""PEP 249 (DB-API 2.0) over private questions: a program that uses pinotdb changes its connect line.

    connection = connect("gris://gateway.example.org:8443/?ca_file=ca.pem&token_file=ana.jwt")
    cursor = connection.cursor()
    cursor.execute("SELECT country, COUNT(DISTINCT member_id) AS members FROM visits "
                   "WHERE device = %(device)s GROUP BY country ORDER BY members DESC LIMIT 10", {"device": "phone"})

Every `execute` is a question that has been paid for when it returns.
"""

from pinot_connector.dbapi.connecting import connect
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
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]
