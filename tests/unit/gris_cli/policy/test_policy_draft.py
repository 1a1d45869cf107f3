"""`gris draft`: a first policy that is sound, safe, and says nothing about the rows."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dp_service.queries.policy import Policy, parse_policy
from dp_service.queries.tables import TauIs
from gris_cli.__main__ import main
from gris_cli.data.policy.draft_names import is_person
from tests.support.command_line import run_json
from tests.support.fake_pinot import FakePinot
from tests.support.some import some

COLUMNS = (
    "1::INTEGER AS customer_id, 'p' AS product, DATE '2026-01-01' AS day, true AS returned, 2::SMALLINT AS pieces, "
    "1.5::DOUBLE AS price, 'a@b' AS email, 'o1' AS order_id, 'nice' AS comment, TIME '12:00:00' AS clock"
)


def write(path: Path, columns: str = COLUMNS, rows: str = "range(3)") -> Path:
    """Write a Parquet file with these columns."""
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT {columns} FROM {rows}) TO '{path}' (FORMAT parquet)")  # noqa: S608
    return path


def drafted(capsys: pytest.CaptureFixture[str], *flags: str) -> tuple[Policy, str, dict[str, Any]]:
    """Draft a policy; return it, its text, and what is reported of the first table."""
    reported = run_json(capsys, "draft", *flags)
    return parse_policy(reported["policy"]), reported["policy"], reported["tables"][0]


def refused(capsys: pytest.CaptureFixture[str], *flags: str) -> str:
    """Return why no policy can be drafted."""
    assert main(["draft", *flags]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    return printed.err


def test_a_draft_offers_what_is_safe_and_promises_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unknown domains, no delta, clipped events; what tells people apart and what questions cannot read is left out."""
    data = str(write(tmp_path / "sales.parquet"))
    policy, text, reported = drafted(capsys, "--names-only", "--data", data)
    (table,) = policy.tables
    assert ("sales", "customer_id", "day") == (table.name, table.member, table.time and table.time.name)
    assert ["day", "pieces", "product", "returned"] == [column.name for column in table.usable_columns]
    assert table.measures.events is not None
    assert table.measures.events.tau_is is TauIs.CLIPPED
    for column in some(table.columns):
        known = (False, True) if column.name == "returned" else None
        assert (known, 2 if known else None) == (column.domain, column.delta)
    roles = {each["name"]: each["role"] for each in reported["columns"]}
    assert roles["customer_id"] == "member"
    assert {"email", "order_id", "comment"} == {name for name, role in roles.items() if role == "withheld"}
    assert "clock" == next(name for name, role in roles.items() if role == "not readable")
    assert "summed" == roles["price"]
    for explained in ("DECIDE", "domain:", "delta:", "tau", "No row was read"):
        assert explained in text


def test_a_draft_of_names_is_the_same_whatever_the_rows_hold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One of a table without rows, too; and no value is in it, not even one that a type lists."""
    texts = []
    for number, rows in enumerate(("range(0)", "range(3)", "range(100000)")):
        folder = tmp_path / str(number)
        folder.mkdir()
        columns = f"'secret{number}' || range AS product, range AS user_id"
        data = str(write(folder / "t.parquet", columns, rows))
        texts.append(drafted(capsys, "--names-only", "--data", data)[1])
    assert len(set(texts)) == 1
    listed = tmp_path / "types.duckdb"
    with duckdb.connect(listed) as connection:
        connection.execute("CREATE TYPE mood AS ENUM ('secret')")
        connection.execute(
            "CREATE TABLE t (user_id BIGINT, page VARCHAR, mood mood, parts STRUCT(secret INTEGER))"
        )
    _, text, _ = drafted(capsys, "--names-only", "--data", str(listed))
    assert "mood cannot be asked about: ENUM" in text
    assert "secret" not in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("columns", "flags", "expected"),
    [
        (
            "1 AS a, 'x' AS b, 1.5::DOUBLE AS c, true AS d",
            (),
            "--data: no column's name says that it holds the person who is to be protected, with all their rows; state "
            "which of these does: a (INTEGER), b (VARCHAR), c (DOUBLE) (--member)",
        ),
        (
            "1 AS user_id, 2 AS customer_id",
            (),
            "several columns could hold the person who is to be protected: user_id (INTEGER), customer_id (INTEGER)",
        ),
        ("1 AS user_id", ("--member", "person"), "--member: there is no column person"),
        ("now() AS at", ("--member", "at"), "column at: members need a column of texts, integers or days"),
        ("true AS yes", ("--member", "yes"), "this one is BOOLEAN"),
        (
            '1 AS "us er"',
            ("--member", "us er"),
            'without spaces; rename it in the data, in DuckDB by SELECT * RENAME ("us er" AS us_er) FROM ..',
        ),
        ('1 AS "\u540d"', ("--member", "\u540d"), '("\u540d" AS another_name)'),
    ],
)
def test_a_member_that_is_in_doubt_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], columns: str, flags: tuple[str, ...], expected: str
) -> None:
    """A wrong member protects nobody, so it is never a guess between two."""
    data = str(write(tmp_path / "t.parquet", columns))
    assert expected in refused(capsys, "--data", data, *flags)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (
            '1 AS "Customer ID", 2 AS x',
            'the member column "Customer ID": a policy names columns by ASCII letters',
        ),
        ("[1] AS user_id, 2 AS customer, 'x' AS page", None),
        (
            "TIME '12:00:00' AS customer_id",
            "the person who is to be protected, with all their rows; state which",
        ),
    ],
)
def test_a_flag_that_was_not_given_is_not_blamed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], columns: str, expected: str | None
) -> None:
    """A member that was chosen by its name, and cannot be one: the column is named, and what is wrong with it."""
    data = str(write(tmp_path / "t.parquet", columns))
    if expected is None:
        assert "customer" == drafted(capsys, "--data", data)[0].tables[0].member
        return
    said = refused(capsys, "--data", data)
    assert expected in said
    assert "--member Customer" not in said


def test_a_truth_value_tells_nobody_apart_whatever_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has two values: names such as is_mobile and has_email are about a person and not of one."""
    columns = (
        "1 AS user_id, true AS is_mobile, true AS has_email, true AS is_customer, true AS id, 'x' AS mobile"
    )
    policy, _, reported = drafted(capsys, "--data", str(write(tmp_path / "t.parquet", columns)))
    offered = [column.name for column in policy.tables[0].usable_columns]
    assert ["has_email", "id", "is_customer", "is_mobile"] == offered
    assert [("user_id", "member"), ("mobile", "withheld")] == [
        (each["name"], each["role"]) for each in reported["columns"] if each["role"] != "asked about"
    ]


def test_a_list_is_not_called_by_the_type_of_its_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A list of texts is left out because it is a list, and texts can be read."""
    columns = "1 AS user_id, ['a'] AS tags, [1]::INTEGER[1] AS sizes"
    _, text, reported = drafted(capsys, "--data", str(write(tmp_path / "t.parquet", columns + ", 1 AS size")))
    reasons = {each["name"]: each["reason"] for each in reported["columns"]}
    assert reasons["tags"].startswith("LIST: questions read texts, numbers")
    assert reasons["sizes"].startswith("LIST: questions read texts, numbers")
    assert "VARCHAR" not in text


def test_a_file_without_its_flag_is_given_the_flag(capsys: pytest.CaptureFixture[str]) -> None:
    """gris check takes a file so, and draft does not."""
    assert "--data events.parquet names a table's file" in refused(capsys, "events.parquet")


def test_integers_that_count_time_are_not_offered_as_elements(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By their names; the draft says how questions can take ranges of them, also as the table's time."""
    clocks = "1767225600000 AS event_ts, 1767225600 AS createdAt_s, 1767225600000000 AS clicked_us"
    columns = f"1 AS user_id, {clocks}, 5 AS response_time, 3 AS attempts, 70 AS load_ms"
    data = str(write(tmp_path / "t.parquet", columns))
    policy, text, reported = drafted(capsys, "--names-only", "--data", data)
    (table,) = policy.tables
    assert ["attempts", "load_ms", "response_time"] == [column.name for column in table.usable_columns]
    assert {"event_ts", "createdAt_s", "clicked_us"} == {
        each["name"] for each in reported["columns"] if each["reason"]
    }
    assert "# time: {column: event_ts, type: timestamp, unit: milliseconds}" in text
    assert "# event_ts: {type: timestamp, unit: milliseconds, filter: [range]}" in text
    assert "# createdAt_s: {type: timestamp, unit: seconds, filter: [range]}" in text
    assert "# clicked_us: {type: timestamp, unit: microseconds, filter: [range]}" in text
    proposed = text.replace("# time: {column: event", "time: {column: event")
    assert parse_policy(proposed).tables[0].time is not None


@pytest.mark.parametrize(
    ("columns", "expected", "unsaid"),
    [
        ("1 AS user_id, 'x' AS page", "the text 'null', the integer -9223372036854775808.", "1970"),
        (
            "DATE '2026-01-01' AS user_id, true AS paid",
            "A missing value counts as false.",
            "Pinot stores for it",
        ),
        ("1 AS user_id, now()::TIMESTAMP AS seen", "-9223372036854775808, 1970-01-01T00:00:00Z.", "'null'"),
    ],
)
def test_a_draft_says_what_counts_as_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], columns: str, expected: str, unsaid: str
) -> None:
    """Rows with Pinot's values for NULL are left out, whatever engine has the data: of the types that are offered."""
    _, text, _ = drafted(capsys, "--data", str(write(tmp_path / "t.parquet", columns)))
    said = " ".join(text.replace("#", " ").split())
    assert expected in said
    assert unsaid not in said
    assert "rows in which a column has no value (NULL) are left out" in said


def test_the_owner_names_another_member(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Then what looks like people besides is not asked about."""
    data = str(write(tmp_path / "t.parquet", "1 AS user_id, 2 AS household, 'x' AS page"))
    policy, text, _ = drafted(capsys, "--data", data, "--member", "household")
    assert "household" == policy.tables[0].member
    assert ["page"] == [column.name for column in policy.tables[0].usable_columns]
    assert "You named it." in text


def test_a_timestamp_is_the_time_of_a_table_without_days(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of several it is that of the row's event, and the draft says so; it has buckets, and is not grouped by."""
    one = str(write(tmp_path / "one.parquet", "1 AS user_id, TIMESTAMP '2026-01-01 12:00:00' AS at"))
    (table,) = drafted(capsys, "--data", one)[0].tables
    assert table.time is not None
    assert "at" == table.time.name
    assert not table.column("at").group_by
    assert "day" in table.buckets
    stamps = "now() AS closed_at, TIMESTAMP '2026-01-01 12:00:00' AS opened_at"
    two = str(write(tmp_path / "two.parquet", f"1 AS user_id, {stamps}"))
    policy, text, reported = drafted(capsys, "--data", two)
    (table,) = policy.tables
    assert table.time is not None
    assert "opened_at" == table.time.name
    assert ["opened_at", "closed_at"] == reported["times"]
    assert "DECIDE: closed_at could be it too" in text
    assert ["closed_at", "opened_at"] == [column.name for column in table.usable_columns]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("user_id", True),
        ("userId", True),
        ("userid", True),
        ("CustomerID", True),
        ("customer", True),
        ("member_hash", True),
        ("product_id", False),
        ("user_agent", False),
        ("id", False),
        ("paid", False),
    ],
)
def test_a_name_says_that_a_column_holds_people(name: str, expected: bool) -> None:
    """A noun for people, alone or with a word for a key, however it is written."""
    assert expected is is_person(name)


@pytest.mark.parametrize(
    ("names", "is_left_out"),
    [
        (
            "fahrer_nr kassierer bearbeiter verkaeufer mitarbeiter_id arzt strasse hausnummer plz vorname nachname",
            True,
        ),
        (
            "telefon bemerkung kommentar notiz geburtsdatum kunde_name name nombre code_postal prenom vendeur",
            True,
        ),
        (
            "conductor_id apellido comentario medico cognome venditore motorista telefone verkoper voornaam",
            True,
        ),
        (
            "barber_id sitter juror captain pupil mate kid waiter uploader teammate csm gamertag screen_name nin",
            True,
        ),
        ("vat_id mac adid photo avatar witness editor_id drawer crew_id country_manager", True),
        ("rated_by_friend liked_by_friends answered_by_agent_no seen_by", True),
        (
            "artikel_nummer produkt_name screen_size vat_rate photo_count crew_size land ciudad country_citizen",
            False,
        ),
        ("sorted_by grouped_by_friend rated_by_region", False),
    ],
)
def test_names_in_other_languages_are_known_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], names: str, is_left_out: bool
) -> None:
    """And a day of birth is never the time of a row."""
    columns = ", ".join(f"'x' AS {name}" for name in names.split())
    days = "DATE '2026-01-01' AS geburts_datum, DATE '2026-01-01' AS born_on, DATE '2026-01-01' AS day"
    data = str(write(tmp_path / "t.parquet", f"1 AS user_id, {columns}, {days}"))
    *_, reported = drafted(capsys, "--names-only", "--data", data, "--member", "user_id")
    assert ["day"] == reported["times"]
    roles = {each["role"] for each in reported["columns"] if each["name"] in names.split()}
    assert roles == {"withheld" if is_left_out else "asked about"}


def test_names_that_no_policy_can_hold_stay_comments(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither a line break nor a colon in a name becomes a line of the policy."""
    odd = '"a\n    columns: {}"'
    data = str(
        write(tmp_path / "t.parquet", f'1 AS user_id, 2 AS {odd}, 3 AS "größe", 4 AS gris_count, 5 AS "null"')
    )
    policy, text, _ = drafted(capsys, "--data", data)
    assert ["null"] == [column.name for column in policy.tables[0].usable_columns]
    assert '# "a\\n columns: {}" cannot be asked about' in text


def test_a_database_says_which_table_if_it_has_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where there are several, TABLE=PATH has to say which one is meant."""
    data = tmp_path / "shop.duckdb"
    with duckdb.connect(data) as connection:
        connection.execute("CREATE TABLE visits AS SELECT 1 AS user_id, 'x' AS page")
    assert "visits" == drafted(capsys, "--data", str(data))[0].tables[0].name
    with duckdb.connect(data) as connection:
        connection.execute("CREATE TABLE orders AS SELECT 1 AS user_id, 'x' AS item")
    assert "which table is meant; there are: orders, visits" in refused(capsys, "--data", str(data))
    assert "orders" == drafted(capsys, "--data", f"orders={data}")[0].tables[0].name
    assert "expected a table nothing" in refused(capsys, "--data", f"nothing={data}")


def test_no_policy_is_drafted_of_a_view(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The engine would refuse it, with the same words."""
    data = tmp_path / "shop.duckdb"
    with duckdb.connect(data) as connection:
        connection.execute("CREATE VIEW visits AS SELECT 1 AS user_id, 'x' AS page")
    assert "visits of the DuckDB database is a view" in refused(capsys, "--data", f"visits={data}")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("part/*.parquet", "part/*.parquet: the data folder part has no file named .parquet"),
        ("s3://shop/orders.parquet", "s3://shop/orders.parquet is on another machine: copy it here first"),
        ("x.json", "read_json("),
        ("x.txt.gz", "expected a file named .parquet, .csv, .tsv, .duckdb or .db"),
        ("x.parquet", "x.parquet is no Parquet file"),
        ("two-words.parquet", "two-words.parquet is no Parquet file"),
        ("nowhere.parquet", "there is no file"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, expected: str
) -> None:
    """And no value of it is repeated."""
    path = tmp_path / name
    if name.startswith("x") or "words" in name:
        path.write_text("user_id,page\n1,secret\n")
    said = refused(capsys, "--data", name if ":" in name else str(path))
    assert expected in said
    assert "secret" not in said


@pytest.mark.parametrize("table", ["", "visits="])
def test_folders_with_an_equals_sign_name_no_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    """Neither one that the path begins with, nor one behind the table's name."""
    monkeypatch.chdir(tmp_path)
    for folder in (Path("country=DE"), Path("part") / "country=DE"):
        folder.mkdir(parents=True)
        data = write(folder / "a.parquet", "1 AS user_id, 'x' AS page")
        reported = drafted(capsys, "--data", f"{table}{data}")[2]
        assert (table.removesuffix("=") or "a") == reported["name"]


def test_a_table_needs_a_name_that_a_policy_can_hold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """TABLE=PATH gives it one."""
    data = str(write(tmp_path / "two words.parquet"))
    for given, name in ((data, "two words"), (f"x y={data}", "x y"), (f"={data}", "")):
        said = refused(capsys, "--data", given)
        assert f"--data: a policy names tables by ASCII letters, digits and underscores, not '{name}'" in said
        assert "TABLE=PATH gives it one" in said
    assert "sales" == drafted(capsys, "--data", f"sales={data}")[0].tables[0].name


def test_decisions_of_the_owner_are_never_written_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And what comes next is printed as commands that can be copied."""
    data, out = write(tmp_path / "sales.parquet"), tmp_path / "policy.yaml"
    assert main(["draft", "--data", str(data), "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert f"  gris check {out} --data sales={data}\n" in printed
    assert "customer_id, by its name: is it the person?" in printed
    written = out.read_text()
    assert "is there already" in refused(capsys, "--data", str(data), "--out", str(out))
    assert out.read_text() == written
    assert "No such file or directory" in refused(
        capsys, "--data", str(data), "--out", str(tmp_path / "nowhere" / "x")
    )


SCHEMA = {
    "dimensionFieldSpecs": [
        {"name": "userId", "dataType": "INT"},
        {"name": "page", "dataType": "STRING"},
        {"name": "tags", "dataType": "STRING", "singleValueField": False},
        {"name": "code", "dataType": "STRING", "defaultNullValue": "none"},
        {"name": "score", "dataType": "DOUBLE"},
    ],
    "metricFieldSpecs": [{"name": "clicks", "dataType": "LONG"}],
    "dateTimeFieldSpecs": [
        {"name": "day", "dataType": "INT", "format": "1:DAYS:EPOCH", "granularity": "1:DAYS"}
    ],
}


def test_a_table_of_pinot_is_drafted_by_its_schema(capsys: pytest.CaptureFixture[str]) -> None:
    """With the values that Pinot stores for NULL where a policy has to state them."""
    fake = FakePinot()
    fake.replies["/tables/visits/schema"] = SCHEMA
    with fake.serving():
        policy, text, _ = drafted(capsys, "--pinot", fake.url, "--table", "visits")
        assert "has no such table" in refused(capsys, "--pinot", fake.url, "--table", "others")
    (table,) = policy.tables
    nulls = {column.name: column.null_value for column in table.columns}
    assert {"userId": -(2**31), "page": "null", "code": "none", "clicks": 0, "day": None} == nulls
    assert table.time is not None
    assert ("userId", "day") == (table.member, table.time.name)
    assert "tags cannot be asked about: one row has several values in it" in text
    assert "score, DOUBLE, is no element: it can have sums and" in text


def _with_timestamp(null: object) -> dict[str, object]:
    """Return the schema with a TIMESTAMP column that has a default of its own."""
    seen = {"name": "seen", "dataType": "TIMESTAMP", "format": "TIMESTAMP", "granularity": "1:MILLISECONDS"}
    return SCHEMA | {"dateTimeFieldSpecs": [seen | {"defaultNullValue": null}]}


@pytest.mark.parametrize(
    ("null", "stated"),
    [
        (0, "1970-01-01T00:00:00+00:00"),
        ("1577836800123", "2020-01-01T00:00:00.123000+00:00"),
        (-1, "1969-12-31T23:59:59.999000+00:00"),
        ("-62135596800000", "0001-01-01T00:00:00+00:00"),
        (253402300799999, "9999-12-31T23:59:59.999000+00:00"),
    ],
)
def test_a_timestamp_of_pinot_is_drafted_with_its_own_null_value(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], null: object, stated: str
) -> None:
    """As a time that the policy can state, and that the schema is found to have."""
    fake = FakePinot()
    fake.replies["/tables/visits/schema"] = _with_timestamp(null)
    path = tmp_path / "policy.yaml"
    with fake.serving():
        policy, text, _ = drafted(capsys, "--pinot", fake.url, "--table", "visits")
        path.write_text(text)
        assert main(["check", str(path), "--pinot", fake.url]) == 0
    column = policy.table("visits").column("seen")
    assert isinstance(column.null_value, datetime.datetime)
    assert stated == column.null_value.isoformat()


@pytest.mark.parametrize("null", ["2020-01-01 00:00:00.0", "253402300800000", str(-(2**63)), ""])
def test_a_timestamp_whose_null_value_no_policy_can_state_is_left_out(
    capsys: pytest.CaptureFixture[str], null: str
) -> None:
    """A text is a time of the controller's own zone, which nobody else knows; the rest of the table is drafted."""
    fake = FakePinot()
    fake.replies["/tables/visits/schema"] = _with_timestamp(null)
    with fake.serving():
        policy, text, _ = drafted(capsys, "--pinot", fake.url, "--table", "visits")
    table = policy.table("visits")
    assert "seen" not in {column.name for column in table.columns}
    assert table.time is None
    said = " ".join(text.replace("#", " ").split())
    assert "seen cannot be asked about: its defaultNullValue is no time that a policy can state" in said


def test_a_policy_is_compared_with_the_schemas_of_pinot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The draft of a schema agrees with it; a column that has changed since is named, and so is a missing table."""
    fake = FakePinot()
    fake.replies["/tables/visits/schema"] = SCHEMA
    path = tmp_path / "policy.yaml"
    with fake.serving():
        assert main(["draft", "--pinot", fake.url, "--table", "visits", "--out", str(path)]) == 0
        check = ["check", str(path), "--pinot", fake.url]
        assert main([*check, "--json"]) == 0
        capsys.readouterr()
        fields = [{"name": "userId", "dataType": "LONG"}, {"name": "page", "dataType": "BOOLEAN"}]
        fake.replies["/tables/visits/schema"] = {"dimensionFieldSpecs": fields}
        assert main(check) == 2
        said = capsys.readouterr().err
        del fake.replies["/tables/visits/schema"]
        assert main(check) == 2
        assert "Pinot has no such table" in capsys.readouterr().err
    assert "visits: column page: Pinot holds BOOLEAN, and the policy says string" in said
    assert "visits: column userId: Pinot stores -9223372036854775808 where a value is missing" in said
    assert "visits: Pinot's table has no column day" in said


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ((), "give --data [TABLE=]PATH, or --pinot URL with --table NAME"),
        (("--pinot", "http://127.0.0.1:1"), "--table NAME"),
        (("--data", "x", "--pinot", "http://127.0.0.1:1", "--table", "t"), "give --data"),
        (("--pinot", "http://127.0.0.1:1", "--table", "t"), "Pinot's controller: no answer at 127.0.0.1:1"),
        (("--pinot", "somewhere", "--table", "t"), "--pinot: expected a URL"),
    ],
)
def test_flags_that_name_no_table_are_refused(
    capsys: pytest.CaptureFixture[str], flags: tuple[str, ...], expected: str
) -> None:
    """By name, and with the address that gave no answer."""
    assert expected in refused(capsys, *flags)
