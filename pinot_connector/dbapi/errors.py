"""PEP 249's tree of errors, and which of them stands for each error of the connector.

    Error
    ├── InterfaceError               the connection or the cursor is misused: closed, nothing executed, bad argument
    └── DatabaseError
        ├── ProgrammingError         the question or a parameter is wrong (InvalidQuestion)
        ├── NotSupportedError        the policy forbids the question (RefusedByPolicy), or a method has no meaning here
        ├── OperationalError         a service or the engine failed, or the account is unknown (all other errors)
        │   └── BudgetExhaustedError the budget does not hold the worst case: `shortfalls`
        ├── InternalError            an answer contradicts the protocol (IntegrityError)
        ├── DataError                never raised
        └── IntegrityError           never raised: PEP 249 means foreign keys by it
    Warning                          in `Cursor.messages`: what the numbers of a result mean

`__cause__` is the connector's own error. What `pinot_connector.errors` promises holds here too: no message holds SQL,
literals, counts or an engine's statistics, and after an error there is no result and no charge, unless the cause is
`OutcomeUnknown`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pinot_connector import errors


class Warning(Exception):  # noqa: A001, N818 - PEP 249's name
    """Something to know about a result; cursors have them in `messages`."""


class Error(Exception):
    """Base of all errors here."""


class InterfaceError(Error):
    """The program misuses the connection or the cursor."""


class DatabaseError(Error):
    """The question was not answered."""


class DataError(DatabaseError):
    """Never raised."""


class OperationalError(DatabaseError):
    """A service, the budget or the engine prevents an answer; the question may be right."""


class BudgetExhaustedError(OperationalError):
    """The worst case of the question does not fit the budget; `shortfalls` says where, by how much and until when.

    `largest_k` is the largest LIMIT with which it would fit now, or None.
    """

    def __init__(self, error: errors.BudgetExhausted) -> None:
        super().__init__(error.with_request())
        self.shortfalls = error.shortfalls
        self.largest_k = error.largest_k

    def __reduce__(self) -> tuple[object, ...]:
        """Lets the error be copied, and sent from one process to another."""
        return errors.rebuilt_error, (type(self), self.args, vars(self))


class IntegrityError(DatabaseError):
    """Never raised."""


class InternalError(DatabaseError):
    """An answer contradicts the protocol, so nothing is shown."""


class ProgrammingError(DatabaseError):
    """The question or a parameter is wrong; the message names the field and what was expected."""


class NotSupportedError(DatabaseError):
    """The policy forbids the question, or PEP 249's method has no meaning for private questions."""


_MEANINGS: dict[type[errors.GrisError], type[DatabaseError]] = {
    errors.InvalidQuestion: ProgrammingError,
    errors.RefusedByPolicy: NotSupportedError,
    errors.IntegrityError: InternalError,
    errors.ReleaseNotRecorded: InternalError,
}


@contextmanager
def dbapi_error() -> Iterator[None]:
    """Translates the connector's errors into PEP 249's, with the original as the cause."""
    try:
        yield
    except errors.BudgetExhausted as error:
        raise BudgetExhaustedError(error) from error
    except errors.GrisError as error:
        text = error.with_request()
        if isinstance(error, errors.RefusedByPolicy) and error.rule == "audience":
            text += "; the argument audience of PrivateClient names it, and a gateway's configuration"
        raise _MEANINGS.get(type(error), OperationalError)(text) from error
