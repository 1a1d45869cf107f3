"""Every error of the connector is one of PEP 249's, which says what a program can do about it."""

from __future__ import annotations

import inspect
import pickle
from contextlib import closing
from typing import Any

import pytest

from pinot_connector import dbapi, errors
from pinot_connector.dbapi import Connection
from pinot_connector.dbapi.errors import dbapi_error
from pinot_connector.engines.base import EngineAnswer
from pinot_connector.engines.duckdb import DuckDBEngine
from tests.support.clients import Corrupting
from tests.support.ports import free_port
from tests.support.world import World, new_account

from .questions import ARTICLES, COHORTS, connected

MEANINGS: dict[type[errors.GrisError], type[dbapi.Error]] = {
    errors.GrisError: dbapi.OperationalError,
    errors.InvalidQuestion: dbapi.ProgrammingError,
    errors.RefusedByPolicy: dbapi.NotSupportedError,
    errors.BudgetExhausted: dbapi.BudgetExhaustedError,
    errors.AccountUnknown: dbapi.OperationalError,
    errors.ChargedUnanswered: dbapi.OperationalError,
    errors.IntegrityError: dbapi.InternalError,
    errors.ReleaseNotRecorded: dbapi.InternalError,
    errors.ReleaseStoreFailed: dbapi.OperationalError,
    errors.ServiceError: dbapi.OperationalError,
    errors.BudgetHeld: dbapi.OperationalError,
    errors.ServiceUnavailable: dbapi.OperationalError,
    errors.ServiceMisconfigured: dbapi.OperationalError,
    errors.ServiceUntrusted: dbapi.OperationalError,
    errors.ServiceGone: dbapi.OperationalError,
    errors.TooManyCalls: dbapi.OperationalError,
    errors.TooMuchSql: dbapi.OperationalError,
    errors.HomeUnavailable: dbapi.OperationalError,
    errors.ServiceFailed: dbapi.OperationalError,
    errors.OutcomeUnknown: dbapi.OperationalError,
    errors.ServiceRefused: dbapi.OperationalError,
    errors.PlanExpired: dbapi.OperationalError,
    errors.ReservationOver: dbapi.OperationalError,
    errors.EngineError: dbapi.OperationalError,
    errors.EngineUnavailable: dbapi.OperationalError,
    errors.EngineGone: dbapi.OperationalError,
    errors.IncompleteAnswer: dbapi.OperationalError,
    errors.DataChanged: dbapi.OperationalError,
    errors.EngineRefused: dbapi.OperationalError,
    errors.DataUnreadable: dbapi.OperationalError,
}
TREE = {
    dbapi.Warning: Exception,
    dbapi.Error: Exception,
    dbapi.InterfaceError: dbapi.Error,
    dbapi.DatabaseError: dbapi.Error,
    dbapi.DataError: dbapi.DatabaseError,
    dbapi.OperationalError: dbapi.DatabaseError,
    dbapi.IntegrityError: dbapi.DatabaseError,
    dbapi.InternalError: dbapi.DatabaseError,
    dbapi.ProgrammingError: dbapi.DatabaseError,
    dbapi.NotSupportedError: dbapi.DatabaseError,
}


def test_no_error_of_the_connector_is_forgotten() -> None:
    """Anyone who adds one decides here what it means."""
    known = {
        each for _, each in inspect.getmembers(errors, inspect.isclass) if issubclass(each, errors.GrisError)
    }
    assert known == set(MEANINGS)


@pytest.mark.parametrize("ours", MEANINGS, ids=lambda ours: ours.__name__)
def test_an_error_keeps_its_message_and_its_cause(ours: type[errors.GrisError]) -> None:
    """It has exactly the class of the table, and the original is the cause."""
    error = ours.__new__(ours)
    Exception.__init__(error, "what happened")
    if isinstance(error, errors.BudgetExhausted):
        error.shortfalls = ()
        error.largest_k = None
    if isinstance(error, errors.RefusedByPolicy):
        error.rule = "column"
    with pytest.raises(dbapi.Error, match="what happened") as raised, dbapi_error():
        raise error
    assert MEANINGS[ours] is type(raised.value)
    assert raised.value.__cause__ is error


SHORTFALL = errors.Shortfall(("t", "ana"), "calls", 2, 1, None)


@pytest.mark.parametrize(
    "error",
    [
        errors.BudgetExhausted((SHORTFALL,)),
        errors.BudgetHeld((SHORTFALL,)),
        errors.InvalidQuestion("k", "expected less"),
        errors.ServiceRefused("dp_service", "refused", "REASON"),
        errors.DataChanged("changed"),
        errors.ChargedUnanswered("no answer", 7, 1),
        dbapi.BudgetExhaustedError(errors.BudgetExhausted((SHORTFALL,))),
        dbapi.ProgrammingError("k: expected less"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_crosses_from_one_process_to_another(error: Exception) -> None:
    """A worker that could not send its error back would leave the program waiting, or without its reason."""
    sent = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    assert (type(error), str(error), vars(error)) == (type(sent), str(sent), vars(sent))


@pytest.mark.parametrize("each", TREE, ids=lambda each: each.__name__)
def test_the_tree_is_that_of_pep_249(each: type[Exception]) -> None:
    """Each class has the parent that the PEP gives it, and is an attribute of connections too."""
    assert (TREE[each],) == each.__bases__
    assert each is getattr(Connection, each.__name__)


@pytest.mark.parametrize(
    ("sql", "expected", "words"),
    [
        ("DELETE FROM feedback", dbapi.ProgrammingError, "begins with SELECT"),
        (
            COHORTS.replace("GROUP", "WHERE app ~ 'x' GROUP"),
            dbapi.ProgrammingError,
            "regular expressions are not accepted",
        ),
        (COHORTS.replace("feedback", "secrets"), dbapi.NotSupportedError, "table"),
        (ARTICLES.replace("GROUP", "WHERE member_id = 'x' GROUP"), dbapi.NotSupportedError, "filter"),
    ],
)
def test_a_question_that_may_not_be_asked(
    connection: Connection, sql: str, expected: type[dbapi.Error], words: str
) -> None:
    """A question that is wrong and one that the policy forbids raise different errors."""
    with pytest.raises(expected, match=words) as raised:
        connection.execute(sql)
    assert type(raised.value) is expected


def test_a_wrong_parameter_is_an_error_of_the_program(connection: Connection) -> None:
    """It is named, and nothing was asked."""
    with pytest.raises(dbapi.ProgrammingError, match=r"^parameters\.c: expected a text") as raised:
        connection.execute(COHORTS.replace("GROUP", "WHERE cohort = %(c)s GROUP"), {"c": 1.5})
    assert isinstance(raised.value.__cause__, errors.InvalidQuestion)


def test_an_exhausted_budget_says_what_is_missing(world: World, engine: DuckDBEngine) -> None:
    """Which level, which unit, how much, until when: as for the client."""
    account = new_account("poor")
    with (
        connected(world, engine, account=account) as cursor,
        pytest.raises(dbapi.OperationalError, match="budget does not hold") as raised,
    ):
        cursor.execute(ARTICLES)
    assert isinstance(raised.value, dbapi.BudgetExhaustedError)
    (shortfall,) = raised.value.shortfalls
    assert tuple(account.split("/")) == shortfall.level
    assert ("information", 11, 5) == (shortfall.unit, shortfall.requested, shortfall.remaining)


def test_an_unknown_account_is_an_operational_error(world: World, engine: DuckDBEngine) -> None:
    """The operator has to give it a budget."""
    with (
        connected(world, engine, account="stranger") as cursor,
        pytest.raises(dbapi.OperationalError) as raised,
    ):
        cursor.execute(COHORTS)
    assert isinstance(raised.value.__cause__, errors.AccountUnknown)


@pytest.mark.parametrize("service", ["dp", "budget"])
def test_a_service_that_is_away_is_an_operational_error(
    world: World, engine: DuckDBEngine, service: str
) -> None:
    """Nothing was asked when the connection was opened, so only execute finds out."""
    away: dict[str, Any] = {service: f"127.0.0.1:{free_port()}"}
    connection = connected(world, engine, **away)
    with closing(connection), closing(connection.cursor()) as cursor:
        with pytest.raises(dbapi.OperationalError) as raised:
            cursor.execute(COHORTS)
        assert isinstance(raised.value.__cause__, errors.ServiceUnavailable)


def test_an_engine_that_fails_is_an_operational_error(world: World) -> None:
    """And what it wanted to say stays with it."""

    def fail(_: EngineAnswer) -> EngineAnswer:
        raise errors.IncompleteAnswer("the answer is partial")

    with (
        closing(Corrupting(world, fail)) as engine,
        connected(world, engine) as cursor,
        pytest.raises(dbapi.OperationalError, match="the answer is partial"),
    ):
        cursor.execute(COHORTS)
