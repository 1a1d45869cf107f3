"""The dialect of SQLAlchemy: who may name a gateway, and what it writes."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import column, create_engine, table, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, InterfaceError

from pinot_connector.dbapi.urls import GATEWAYS
from pinot_connector.sqlalchemy import GrisDialect


@pytest.mark.parametrize(
    "url", ["gris://[::1]:8443/?max_cost=20&account=app%2Facme%2Fana+b", "gris://a:hunter2@h:1/"]
)
def test_the_url_is_read_as_it_was_written(url: str) -> None:
    """Nothing is lost on the way, not even what is refused; a driver behind the name of the dialect is dropped."""
    for name in (url, url.replace("gris", "gris+gateway", 1)):
        assert make_url(url) == make_url(GrisDialect().create_connect_args(make_url(name))[1]["url"])


def test_connect_arguments_name_no_other_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are typed beside the URL in BI tools, and come after it."""
    monkeypatch.setenv(GATEWAYS, "h:1")
    with pytest.raises(InterfaceError, match=GATEWAYS):
        create_engine("gris://h:1/", connect_args={"url": "gris://evil.example.org:1"}).connect()
    create_engine("gris://h:1/").connect().close()


@pytest.mark.parametrize("given", [{"token_file": "/etc/passwd"}, "ana.jwt"])
def test_credentials_that_a_configuration_names_are_refused(given: Any) -> None:
    """Connect arguments of BI tools are JSON: what is no object of a program cannot name files."""
    with pytest.raises(InterfaceError, match=r"expected pinot_connector\.Credentials"):
        create_engine("gris://h:1/", connect_args={"credentials": given}).connect()


def test_the_scheme_is_found_by_its_name() -> None:
    """An installed gris-dp registers it; nothing is sent before the first connection."""
    engine = create_engine("gris://h:1/")
    assert ("gris", "gateway", True) == (engine.dialect.name, engine.driver, engine.hide_parameters)


def test_autocommit_is_accepted_and_other_levels_are_refused() -> None:
    """For an engine and for a connection; there are no transactions, so it sets nothing."""
    engine = create_engine("gris://h:1/", isolation_level="AUTOCOMMIT")
    for asking in (engine, create_engine("gris://h:1/").execution_options(isolation_level="AUTOCOMMIT")):
        with asking.connect() as connection:
            again = connection.execution_options(isolation_level="AUTOCOMMIT")
            assert [(1,)] == [tuple(row) for row in again.execute(text("SELECT 1"))]
            assert "AUTOCOMMIT" == again.get_isolation_level()
        asking.dispose()
    with pytest.raises(ArgumentError, match="there are no transactions"):
        create_engine("gris://h:1/", isolation_level="SERIALIZABLE")


def test_a_search_for_part_of_a_text_is_ilike() -> None:
    """As the filters of BI tools write it, which must not become a function of a column."""
    app = table("feedback", column("app")).c.app
    for condition, word in ((app.ilike("%line%"), "ILIKE"), (~app.ilike("%line%"), "NOT ILIKE")):
        written = condition.compile(dialect=GrisDialect(), compile_kwargs={"literal_binds": True})
        assert f'"feedback"."app" {word} \'%%line%%\'' == str(written)
