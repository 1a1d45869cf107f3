"""Policy files: what is read, and how each fault is reported."""

import datetime
from fractions import Fraction

import pytest

from dp_service.queries.columns import Nulls, Operator
from dp_service.queries.currency import Currency
from dp_service.queries.errors import PolicyError
from dp_service.queries.policy import parse_policy, read_policy
from dp_service.queries.tables import Events, TauIs
from dp_service.queries.times import TimeUnit
from dp_service.terms import ColumnType, Consistency, CountNoise
from tests.support.queries.policies import POLICY

HEADER = "epsilon_per: 0.15\ndelta: 1e-10\n"
TABLE = HEADER + "tables:\n  t:\n    member: m\n    measures: {distinct_members: true}\n    columns:\n"


def with_column(column: str) -> str:
    """Return the text of a policy whose only column `c` is as given, on line 8."""
    return f"{TABLE}      c: {column}\n"


def currency(epsilon_per: str, delta: str) -> Currency:
    """Return a currency of Laplace noise."""
    return Currency.model_validate({"epsilon_per": epsilon_per, "delta": delta})


def test_parameters_are_the_exact_numbers_that_the_text_denotes() -> None:
    """0.15 is three twentieths, not the nearest float; 1e-10 is a number although PyYAML reads it as text."""
    assert (POLICY.currency.epsilon_per, POLICY.currency.delta) == (Fraction(3, 20), Fraction(1, 10**10))


@pytest.mark.parametrize("spelling", ["0.15", "0.150", "15e-2", "1.5E-1", "'0.15'"])
def test_a_currency_has_one_name_however_its_numbers_are_written(spelling: str) -> None:
    """The unit's id depends on the numbers alone."""
    policy = parse_policy(with_column("{type: string}").replace("0.15", spelling))
    assert policy.currency.unit_id == "61c38258a2d5d2f817f4797eeb22bee5"


def test_another_currency_has_another_name() -> None:
    """Changing either number changes the unit's id."""
    units = {currency(epsilon, delta).unit_id for epsilon in ("0.15", "0.2") for delta in ("0.1", "0.05")}
    assert len(units) == 4


def test_units_that_may_have_paid_for_gaussian_counts_are_another_currency() -> None:
    """They are worth nothing in bounded range, and a ledger must not add them to others."""
    unstated = parse_policy(with_column("{type: string}")).currency
    gaussian = parse_policy("count_noise: gaussian\n" + with_column("{type: string}")).currency
    laplace = parse_policy("count_noise: laplace\n" + with_column("{type: string}")).currency
    assert CountNoise.GAUSSIAN is gaussian.count_noise
    assert gaussian.unit_id != laplace.unit_id
    assert laplace == unstated
    assert laplace.unit_id == unstated.unit_id


def test_what_is_not_stated_of_a_column_is_unknown_unrestricted_and_not_allowed() -> None:
    """A column with nothing but a type may not be used, and nothing is promised of it."""
    column = parse_policy(with_column("{type: string}")).table("t").column("c")
    assert (column.group_by, column.operators) == (False, [])
    assert (column.domain, column.delta) == (None, None)
    assert (column.nulls, column.null_value) == (Nulls.DROP, "null")


def test_everything_that_is_stated_is_read() -> None:
    """Domains come in element order, operators as a set, the time column with its unit."""
    engagement, clicks = POLICY.table("engagement"), POLICY.table("clicks")
    assert engagement.column("score").domain == (-1, 0, 1)
    assert set(engagement.column("score").operators) == {Operator.IN, Operator.NOT_IN, Operator.RANGE}
    assert (engagement.data_version, engagement.measures.events) == (
        "v1",
        Events(tau=5, tau_is=TauIs.ASSUMED),
    )
    assert (clicks.consistency, clicks.d_bar) == (Consistency.FRESH, 50)
    assert clicks.time is not None
    assert (clicks.time.name, clicks.time.unit, clicks.time.zone) == ("at", TimeUnit.SECONDS, "UTC")
    assert clicks.time_column().type is ColumnType.INT64


def test_plain_yaml_words_mean_what_they_say() -> None:
    """NO is Norway, 007 and 12:30 and 1.5 are texts, and a day is a day in a column of days."""
    texts = parse_policy(with_column("{type: string, domain: [NO, 007, 12:30, 1.5, 2019-01-02]}"))
    days = parse_policy(with_column("{type: date, domain: [2019-01-02]}"))
    assert texts.table("t").column("c").domain == ("007", "1.5", "12:30", "2019-01-02", "NO")
    assert days.table("t").column("c").domain == (datetime.date(2019, 1, 2),)


FAULTS = {
    "unknown key": (
        with_column("{type: string, grupby: true}"),
        "policy:8: tables.t.columns.c.grupby: there is no such key",
    ),
    "unknown header": (HEADER + "tabels: {}", "policy:3: tabels: there is no such key"),
    "unknown count noise": (
        HEADER + "count_noise: normal\ntables: {}",
        "policy:3: count_noise: expected 'laplace' or 'gaussian'",
    ),
    "no tables": (HEADER + "tables: {}", "policy:3: tables: "),
    "empty file": ("", "policy:1: the file: expected keys and their values"),
    "not a mapping": ("- a", "policy:1: the file: expected keys and their values"),
    "broken YAML": ("epsilon_per: [", "policy:1: "),
    "nested without end": ("[" * 5000, "policy:1: expected less nesting"),
    "escape of no character": (
        'a: 1\nb: "\\U00110000"',
        "policy:2: expected escapes of characters that exist",
    ),
    "escape beyond 31 bits": ('a: "\\UFFFFFFFF"', "policy:1: expected escapes of characters that exist"),
    "unprintable": ("a: \x01", "policy:1: expected a YAML text"),
    "duplicate key": (with_column("{type: string, type: string}"), "policy:8: the key 'type' is repeated"),
    "alias": ("a: &x 1\nb: *x", "policy:2: aliases are not allowed"),
    "tag": ("a: !!float 1.0", "policy:1: explicit tags are not allowed"),
    "tag of a truth value": ("a: !!bool yes", "policy:1: explicit tags are not allowed"),
    "tag of an integer": ('a: !!int "0x1F"', "policy:1: explicit tags are not allowed"),
    "tag that says nothing": ("a: ! b", "policy:1: explicit tags are not allowed"),
    "tagged list": ("a:\n- !!seq [b]", "policy:2: explicit tags are not allowed"),
    "tagged mapping": ("a: !!python/object:os.system {}", "policy:1: explicit tags are not allowed"),
    "key that is no text": ("1: 2", "policy:1: expected a text as key"),
    "key of no name": (
        HEADER + "tables: {t-1: {}}",
        "policy:3: tables.t-1: expected a name of ASCII letters, digits and underscores",
    ),
    "column without anything": (with_column(""), "tables.t.columns.c: expected keys and their values"),
    "float type": (
        with_column("{type: double}"),
        "c.type: expected 'string', 'int64', 'bool', 'date' or 'timestamp'",
    ),
    "empty domain": (with_column("{type: string, domain: []}"), "c.domain: expected at least 1 item"),
    "duplicate value": (
        with_column("{type: string, domain: [a, b, a]}"),
        "c.domain: expected each value once",
    ),
    "value of another type": (
        with_column("{type: string, domain: [a, 2]}"),
        "policy:8: tables.t.columns.c.domain.1: expected a value of type string: put it into quotes",
    ),
    "truth value among integers": (
        with_column("{type: int64, domain: [true]}"),
        "expected a value of type int64",
    ),
    "float value": (with_column("{type: int64, domain: [1.5]}"), "expected a value of type int64"),
    "impossible day": (with_column("{type: date, domain: [2019-02-30]}"), "type date as YYYY-MM-DD"),
    "nested value": (
        with_column("{type: string, domain: [[a]]}"),
        "expected a text, an integer, a truth value",
    ),
    "too large an integer": (
        with_column("{type: int64, domain: [9223372036854775808]}"),
        "integer of 64 bits",
    ),
    "an integer of thousands of digits": (
        with_column("{type: int64, delta: 1" + "0" * 5000 + "}"),
        "policy:8: expected an integer of 64 bits",
    ),
    "text too long": (with_column(f"{{type: string, domain: [{'x' * 1025}]}}"), "at most 1024 characters"),
    "delta of zero": (with_column("{type: string, delta: 0}"), "c.delta: expected a number greater than 0"),
    "negative delta": (with_column("{type: string, delta: -1}"), "c.delta: expected a number greater than 0"),
    "unknown operator": (
        with_column("{type: string, filter: [like]}"),
        "expected 'in', 'not_in' or 'range'",
    ),
    "range of texts": (
        with_column("{type: string, filter: [range]}"),
        "c.filter: range: expected a column of type",
    ),
    "null value of another type": (
        with_column("{type: int64, null_value: x}"),
        "c.null_value: expected a value of",
    ),
    "null value in the domain": (
        with_column("{type: string, domain: [a, 'null']}"),
        "c.domain: expected no null value in the domain",
    ),
    "truth values with NULLs but none for them": (
        with_column("{type: bool, nulls: keep}"),
        "c.null_value: expected the value",
    ),
    "days with NULLs but no day for them": (
        with_column("{type: date, nulls: keep}"),
        "c.null_value: expected the value",
    ),
    "name with a quote": (TABLE + "      'a\"b': {type: string}\n", "expected a name of ASCII letters"),
    "look-alike name": (TABLE + "      \u0441ol: {type: string}\n", "expected a name of ASCII letters"),
    # A query would read the column of the table in place of its own: a member could count as often as it says there.
    "name of a query's own": (TABLE + "      gris_cell: {type: int64}\n", "does not begin with gris_"),
    "such a name in capitals": (TABLE + "      GRIS_x: {type: string}\n", "does not begin with gris_"),
    "such a name of the member": (
        TABLE.replace("member: m\n", "member: gris_m\n"),
        "does not begin with gris_",
    ),
    "names that differ in case": (
        TABLE + "      a: {type: string}\n      A: {type: string}\n",
        "expected names that differ in more than case",
    ),
    "member in other case": (TABLE + "      M: {type: string, group_by: true}\n", "differ in more than case"),
    "grouping by members": (
        TABLE + "      m: {type: string, group_by: true}\n",
        "may be neither grouped by nor",
    ),
    "filtering on members": (
        TABLE + "      m: {type: string, filter: [in]}\n",
        "may be neither grouped by nor",
    ),
    "members distinguished by yes and no": (
        TABLE + "      m: {type: bool}\n",
        "policy:8: tables.t.columns.m.type: expected string, int64 or date",
    ),
    "a member for rows without one": (
        TABLE + "      m: {type: string, nulls: keep}\n",
        "m.nulls: expected drop",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("text", "expected"), FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_is_told_with_its_place(text: str, expected: str) -> None:
    """Every fault is refused with line, key path and what was expected."""
    with pytest.raises(PolicyError) as refusal:
        parse_policy(text)
    assert expected in str(refusal.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("epsilon_per", "0"),
        ("epsilon_per", "-0.1"),
        ("epsilon_per", "10.0000000000000000000001"),
        ("epsilon_per", ".inf"),
        ("epsilon_per", "1e-999999999"),
        ("epsilon_per", "true"),
        ("epsilon_per", "0x10"),
        ("epsilon_per", "3/20"),
        ("epsilon_per", ""),
        ("delta", "0.0"),
        ("delta", "1"),
        ("delta", "1e0"),
        ("delta", "[1e-10]"),
    ],
)
def test_a_currency_outside_its_bounds_is_refused(key: str, value: str) -> None:
    """0 < epsilon_per <= 10 and 0 < delta < 1, compared exactly, written as decimals."""
    lines = {"epsilon_per": "0.15", "delta": "1e-10"} | {key: value}
    text = "".join(f"{name}: {number}\n" for name, number in lines.items())
    with pytest.raises(PolicyError, match=f"{key}: "):
        parse_policy(text + with_column("{type: string}").removeprefix(HEADER))


@pytest.mark.parametrize(
    ("addition", "expected"),
    [
        ("measures: {}", "t.measures: expected at least one measure"),
        ("measures: {events: {tau: 3}}", "measures.events.tau_is: expected this key"),
        ("measures: {events: {tau: 3, tau_is: hoped}}", "tau_is: expected 'assumed' or 'clipped'"),
        ("measures: {events: {tau: 0, tau_is: assumed}}", "tau: expected a number greater than 0"),
        ("time: {column: day, type: string}", "time.type: expected 'date', 'int64' or 'timestamp'"),
        (
            "time: {column: at, type: int64}",
            "time.unit: expected days, seconds or milliseconds for an int64 column",
        ),
        (
            "time: {column: day, type: date, unit: days}",
            "time.unit: expected none for a date column",
        ),
        ("time: {column: c, type: date}", "time.type: expected the type that the table's columns give"),
        ("time: {column: m, type: date}", "time.column: expected a column other than the member column"),
        (
            "time: {column: day, type: date, zone: Europe/Bärlin}",
            "policy:8: tables.t.time.zone: expected the name of an IANA time zone",
        ),
        ("time: {column: day, type: date, zone: ../UTC}", "time.zone: expected the name of an IANA"),
        ("time: {column: day, type: date, zone: Europe}", "time.zone: expected the name of an IANA"),
        # What a machine calls its own is another zone elsewhere, and `right` counts leap seconds.
        ("time: {column: day, type: date, zone: localtime}", "time.zone: expected the name of an IANA"),
        ("time: {column: day, type: date, zone: right/UTC}", "time.zone: expected the name of an IANA"),
        (
            "time: {column: day, type: date, refresh: hour}",
            "refresh: expected 'day', 'week' or 'month'",
        ),
        (
            "time: {column: day, type: date, delay_minutes: 1}",
            "time.delay_minutes: expected a refresh period as well",
        ),
        (
            "time: {column: day, type: date, refresh: day, delay_minutes: -1}",
            "delay_minutes: expected a number greater than or equal to 0",
        ),
        ("d_bar: 9", "d_bar: expected a number greater than or equal to 10"),
        ("d_bar: 100001", "d_bar: expected a number less than or equal to 100000"),
        ("data_version: ''", "data_version: expected at least 1 character"),
        ("consistency: sometimes", "consistency: expected 'keyed' or 'fresh'"),
    ],
)
def test_a_table_that_cannot_be_honoured_is_refused(addition: str, expected: str) -> None:
    """Measures, time column and parameters are checked with what they mean together."""
    base = {"member": "m", "measures": "{distinct_members: true}", "columns": "{c: {type: string}}"}
    key, _, value = addition.partition(": ")
    body = "".join(f"    {name}: {text}\n" for name, text in (base | {key: value}).items())
    with pytest.raises(PolicyError) as refusal:
        parse_policy(f"{HEADER}tables:\n  t:\n{body}")
    assert expected in str(refusal.value)


@pytest.mark.parametrize("stated", ["0", "-5", "100001", "1e9", ".inf", "''", "[]", "true", "9" * 30])
def test_a_max_k_of_the_header_that_is_no_number_of_elements_is_refused(stated: str) -> None:
    """A bound that cannot be read must not become none."""
    with pytest.raises(PolicyError, match=r"max_k|expected an integer of 64 bits"):
        parse_policy(f"max_k: {stated}\n" + with_column("{type: string}"))


@pytest.mark.parametrize("stated", ["", ", delay_minutes: 4320"])
@pytest.mark.parametrize("name", ["t", "t_OFFLINE"])
def test_the_offline_part_of_a_pinot_table_has_no_default_delay(name: str, stated: str) -> None:
    """It is whole days after the stream is; what closes too early is answered without its rows."""
    text = f"""{HEADER}tables:
  {name}:
    member: m
    measures: {{distinct_members: true}}
    time: {{column: day, type: date, refresh: day{stated}}}
    columns: {{c: {{type: string}}}}
"""
    if name == "t" or stated:
        time = parse_policy(text).table(name).time
        assert time is not None
        assert time.delay_minutes == (4320 if stated else 5)
        return
    with pytest.raises(
        PolicyError, match=r"policy:7: tables\.t_OFFLINE\.time\.delay_minutes: expected how many"
    ):
        parse_policy(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a:\n\tb: 1\n", "policy:2: a tab is not allowed here: indent with spaces"),
        ("a:\n  b: 1\n c: 2\n", "policy:3: this line does not continue what is above it"),
        ("a b\nc: d\n", "policy:2: this colon follows no key"),
        ("a: b: c\n", "policy:1: this colon follows no key"),
        (
            "a: {b: 1\nc: d\n",
            "policy:2: a mapping in braces needs a comma between its keys, and a } at its end",
        ),
        (
            "a: [b, c\nd: e\n",
            "policy:2: a list in brackets needs a comma between its values, and a ] at its end",
        ),
        ("a: 'b\n", "policy:2: quotes that are opened here or above are not closed"),
        ("a: b\nc\nd: e", "policy:3: expected a key, a colon and its value"),
        ("a: b\n---\nc: d", "policy:2: expected one document"),
        ('a: "\\d"', "policy:1: a backslash in double quotes means something else"),
        ("a: %b", "policy:1: no text begins with this character: put it into quotes"),
        ("a: &\n", "policy:1: a text that begins with *, & or % needs quotes"),
    ],
)
def test_what_is_wrong_with_the_form_of_a_file_is_told_to_who_writes_it(text: str, expected: str) -> None:
    """By its line, and without the words of the parser, such as '\\t' and <block end>."""
    with pytest.raises(PolicyError) as refusal:
        parse_policy(text)
    assert str(refusal.value).startswith(expected)


def test_all_faults_are_told_at_once() -> None:
    """An operator corrects a file in one go."""
    with pytest.raises(PolicyError) as refusal:
        parse_policy(with_column("{type: string, domain: [1], filter: [range]}"))
    assert len(refusal.value.problems) == 2


def test_a_file_is_named_in_its_faults() -> None:
    """The path in the message says which of several policies is meant."""
    with pytest.raises(PolicyError, match=r"broken\.yaml:1: epsilon_per: expected this key"):
        read_policy(b"delta: 1e-10\n", "broken.yaml")


def test_a_file_that_is_no_text_is_refused() -> None:
    """Bytes that are not UTF-8 are a fault of the policy, not of the program."""
    with pytest.raises(PolicyError, match="expected a text in UTF-8"):
        read_policy(b"\xff\xfe", "policy")
