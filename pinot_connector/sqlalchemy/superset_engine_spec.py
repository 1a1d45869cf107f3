"""What Apache Superset should know of gateways; its entry point is `superset.db_engine_specs`.

Superset finds it by itself where gris-dp is installed beside it. Nothing else imports this module: it needs Superset.
"""

from __future__ import annotations

import datetime
from typing import Any

from sqlalchemy.engine import URL
from sqlalchemy.exc import NoSuchTableError
from superset.constants import TimeGrain
from superset.db_engine_specs.base import BaseEngineSpec

from pinot_connector.dbapi import ProgrammingError


def _kind_of(expression: str) -> str:
    """Returns what Superset calls a metric of this function."""
    return "count_distinct" if "DISTINCT" in expression else expression.partition("(")[0].lower()


class GrisEngineSpec(BaseEngineSpec):  # type: ignore[misc]  # Superset is not installed where types are checked
    """Prices before questions, a budget for each user, and which SQL not to write."""

    engine = "gris"
    engine_name = "Gris"
    default_driver = "gateway"
    sqlalchemy_uri_placeholder = "gris://HOST:PORT/?ca_file=ca.pem&token_file=superset.jwt"

    allows_joins = False
    allows_subqueries = False
    allows_sql_comments = False
    allows_cte_in_subquery = False
    # An element or a count that is not selected would be ordered by in secret; it is refused.
    allows_hidden_orderby_agg = False
    supports_file_upload = False
    disable_ssh_tunneling = True
    # IS TRUE is not accepted.
    use_equality_for_boolean_filters = True
    # Those that the policy does not offer for a table are refused by name.
    _time_grain_expressions = {  # noqa: RUF012 - as in the base class
        None: "{col}",
        TimeGrain.DAY: "DATE_TRUNC('day', {col})",
        TimeGrain.WEEK: "DATE_TRUNC('week', {col})",
        TimeGrain.MONTH: "DATE_TRUNC('month', {col})",
        TimeGrain.QUARTER: "DATE_TRUNC('quarter', {col})",
        TimeGrain.YEAR: "DATE_TRUNC('year', {col})",
    }

    @classmethod
    def get_metrics(cls, database: Any, inspector: Any, table: Any) -> list[dict[str, str]]:
        """Returns the metrics that a new dataset begins with: what the policy offers, none of a virtual one."""
        try:
            offered = inspector.get_table_options(table.table, table.schema)
        except NoSuchTableError:
            return []
        return [
            {"expression": each, "metric_name": name, "verbose_name": name, "metric_type": _kind_of(each)}
            for name, each in offered["gris_metrics"].items()
        ]

    @classmethod
    def get_column_description_limit_size(cls) -> int:
        """Returns how many rows tell the columns of a virtual dataset: with none it is free."""
        return 0

    @classmethod
    def convert_dttm(
        cls, target_type: str, dttm: datetime.datetime, db_extra: dict[str, Any] | None = None
    ) -> str | None:
        """Returns the literal for a time in a column of this type.

        It is a plain text, which a column of days and one of timestamps both take.
        """
        kind = target_type.upper()
        if kind == "DATE":
            return f"'{dttm.date().isoformat()}'"
        if kind in ("DATETIME", "TIMESTAMP"):
            return f"'{dttm.isoformat(sep=' ', timespec='microseconds')}'"
        return None

    @classmethod
    def execute(cls, cursor: Any, query: str, database: Any, **kwargs: Any) -> None:
        """Asks a question. Superset has no placeholders, so every per cent sign means itself."""
        super().execute(cursor, query.replace("%", "%%"), database, **kwargs)

    @classmethod
    def get_allow_cost_estimate(cls, extra: dict[str, Any]) -> bool:
        """Returns that there is a price before asking, for Superset's feature ESTIMATE_QUERY_COST."""
        return True

    @classmethod
    def estimate_statement_cost(cls, database: Any, statement: str, cursor: Any) -> dict[str, str]:
        """Returns the price of a question; nothing is charged."""
        cursor.execute("EXPLAIN " + statement.replace("%", "%%"))
        price: dict[str, str] = {}
        for name, value in cursor.fetchall():
            price[name] = f"{price[name]} {value}" if name in price else value
        return price

    @classmethod
    def query_cost_formatter(cls, raw_cost: list[dict[str, str]]) -> list[dict[str, str]]:
        """Returns prices as they are."""
        return raw_cost

    @classmethod
    def impersonate_user(
        cls,
        database: Any,
        username: str | None,
        user_token: str | None,
        url: URL,
        engine_kwargs: dict[str, Any],
    ) -> tuple[URL, dict[str, Any]]:
        """Has the account of the user pay, which is below the account in the URL.

        Raises:
            ProgrammingError: the URL names no account, or the user's name cannot be the name of one account.
        """
        account = url.query.get("account")
        if not account or not isinstance(account, str):
            raise ProgrammingError(
                "to impersonate users, the URL needs account=, above the accounts of all users"
            )
        if not username or "/" in username or username in (".", ".."):
            raise ProgrammingError("this user's name cannot be the name of an account")
        return url.update_query_dict({"account": f"{account}/{username}"}), engine_kwargs
