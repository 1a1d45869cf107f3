"""`gris bound --pairs`: each member, element and period once, linked to the one before; closed periods are appended."""

from __future__ import annotations

import datetime
import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dp_service.queries.pairs_manifest import NO_PERIOD, LeftOut, read_manifest
from gris_cli.__main__ import main
from gris_data.bound.pairs_rows import PeriodContent, numbers_of
from gris_data.bound.pairs_source import PairsCopyRequest
from gris_data.bound.source import Columns
from gris_data.errors import InputError
from tests.support.pairs_copies import (
    START,
    UNTIL,
    Row,
    asked,
    make,
    number,
    random_rows,
    reference,
    rows_of,
    write,
)
from tests.support.some import some
from tests.support.texts import write_times


def test_a_copy_has_each_pair_once_in_a_period_and_names_the_one_before(tmp_path: Path) -> None:
    """Rows that lack something are counted by what they lack first."""
    kept = "\N{GRINNING FACE}" * 512
    rows = [*random_rows(1999, seed=1), ("m01", kept, "DE", UNTIL - datetime.timedelta(days=3))]
    missing: list[Row] = [
        (None, None, "FR", None),
        ("null", "e1", "FR", UNTIL - datetime.timedelta(days=3)),
        ("m01", "e1", "DE", None),
        ("m01", None, "DE", UNTIL - datetime.timedelta(days=3)),
        ("m01", "nul\0", "DE", UNTIL - datetime.timedelta(days=3)),
        ("m01", "\N{GRINNING FACE}" * 513, "DE", UNTIL - datetime.timedelta(days=3)),
        ("m01", "long" * 300, "DE", UNTIL - datetime.timedelta(days=3)),
        ("m01", "e1", "DE", UNTIL),
    ]
    made = make(write(tmp_path / "visits.parquet", [*rows, *missing]), tmp_path / "copy")
    assert rows_of(tmp_path / "copy") == reference(rows)
    assert (made.left_out, made.rows_of_open_periods, made.rows) == (LeftOut(2, 1, 4), 1, 2008)
    manifest = read_manifest((tmp_path / "copy" / "manifest.json").read_bytes())
    assert (manifest.end, manifest.left_out) == (UNTIL, LeftOut(2, 1, 4))
    assert sum(each.rows for each in manifest.periods) == made.pairs == len(reference(rows))


@pytest.mark.slow
def test_a_copy_that_grew_by_closed_periods_is_the_one_that_was_made_at_once(tmp_path: Path) -> None:
    """Whether each run sees the whole table or the new period alone; the files of older periods stay as they are."""
    rows = random_rows(1500, seed=2)
    whole = write(tmp_path / "visits.parquet", rows)
    make(whole, tmp_path / "at_once")
    for name in ("whole", "new_rows_only"):
        first, second = datetime.date(2024, 4, 1), datetime.date(2024, 6, 1)
        for start, until in ((None, first), (first, second), (second, UNTIL)):
            given = [row for row in rows if name == "whole" or start is None or (row[3] and row[3] >= start)]
            make(write(tmp_path / "part.parquet", given), tmp_path / name, asked(until=until))
        assert rows_of(tmp_path / name) == rows_of(tmp_path / "at_once")
    march = "periods/2024-03-01.parquet"
    assert (tmp_path / "whole" / march).read_bytes() == (tmp_path / "at_once" / march).read_bytes()


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Give a copy of two closed months; the table is `visits.parquet`."""
    write(tmp_path / "visits.parquet", ROWS)
    make(tmp_path / "visits.parquet", tmp_path / "copy", asked(until=datetime.date(2024, 3, 1)))
    return tmp_path / "copy"


def day(month: int) -> datetime.date:
    """Return a day of that month."""
    return datetime.date(2024, month, 7)


ROWS: list[Row] = [("ada", "x", "FR", day(1)), ("bob", "x", "DE", day(1)), ("ada", "x", "FR", day(2))]
BAD: dict[str, tuple[list[Row], str]] = {
    "a backfill": (
        [*ROWS, ("ada", "x", "FR", day(3)), ("bob", "x", "DE", day(2))],
        "row 5: 1 pairs are of periods before 2024-03-01, and the copy that is there does not have them",
    ),
    "a period that lost a pair": (ROWS[1:], "the input lacks 1 pairs that the copy has"),
    "an attribute with two values": (
        [*ROWS, ("eve", "x", "FR", day(3)), ("eve", "y", "DE", day(3))],
        "row 5, column country: 1 members have more than one value",
    ),
    "an attribute that was another in an older period": (
        [("ada", "y", "DE", day(3))],
        "row 1, column country: 1 members have more than one value",
    ),
    "an attribute that is missing once": (
        [*ROWS, ("ada", "y", None, day(3))],
        "row 4, column country: 1 members have more than one value",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "message"), BAD.values(), ids=BAD)
def test_what_does_not_fit_the_copy_leaves_it_as_it_was(
    copy: Path, tmp_path: Path, rows: list[Row], message: str
) -> None:
    """The error says where, and repeats no value."""
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    with pytest.raises(InputError) as refused:
        make(write(tmp_path / "more.parquet", rows), copy, asked(until=datetime.date(2024, 4, 1)))
    assert message in str(refused.value)
    assert "ada" not in str(refused.value)
    assert before == {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}


def test_a_column_that_has_another_type_by_now_is_not_appended(copy: Path, tmp_path: Path) -> None:
    """Beside texts, numbers would be read as texts, or texts as numbers: then some are one element that were two."""
    whole = pq.read_table(write(tmp_path / "more.parquet", [("ada", "1", "FR", day(3))]))
    place = whole.schema.get_field_index("what")
    pq.write_table(
        whole.set_column(place, "what", whole["what"].cast(pa.int64())), tmp_path / "numbers.parquet"
    )
    with pytest.raises(InputError, match=r"column what: expected VARCHAR, .* and not BIGINT"):
        make(tmp_path / "numbers.parquet", copy, asked(until=datetime.date(2024, 4, 1)))


def test_a_copy_that_is_not_what_its_manifest_says_is_not_appended_to(copy: Path, tmp_path: Path) -> None:
    """A file was replaced; or a period of the manifest is another one than was appended to those before it."""
    source = write(tmp_path / "more.parquet", [("ada", "x", "FR", day(3))])
    april = asked(until=datetime.date(2024, 4, 1))
    february = copy / "periods" / "2024-02-01.parquet"
    whole = february.read_bytes()
    february.write_bytes(b"")
    with pytest.raises(InputError, match="is not the file that its manifest names"):
        make(source, copy, april)
    february.write_bytes(whole)
    stated = json.loads((copy / "manifest.json").read_bytes())
    # January's file is read twice: as itself, and in the place of February's.
    january = stated["periods"][0]
    february.write_bytes((copy / january["file"]).read_bytes())
    stated["periods"][1] |= {"checksum": january["checksum"], "rows": january["rows"]}
    (copy / "manifest.json").write_text(json.dumps(stated))
    with pytest.raises(InputError, match="expected periods of one copy only"):
        make(source, copy, april)


def test_a_copy_of_something_else_is_not_appended_to(copy: Path, tmp_path: Path) -> None:
    """By what it was made with; and one of an earlier form is to be made anew."""
    source = write(tmp_path / "more.parquet", [("ada", "x", "FR", day(3))])
    with pytest.raises(InputError, match="made with another calendar"):
        make(source, copy, asked("week", until=datetime.date(2024, 4, 1)))
    manifest = copy / "manifest.json"
    manifest.write_bytes(manifest.read_bytes().replace(b"gris-pairs/3", b"gris-pairs/2"))
    with pytest.raises(InputError, match="Make it anew with gris bound --pairs"):
        make(source, copy, asked(until=datetime.date(2024, 4, 1)))


def test_a_copy_has_no_more_periods_than_engines_are_asked_for(tmp_path: Path) -> None:
    """They are counted by pairs of periods before anything is written."""
    days = [("ada", "x", "FR", START + datetime.timedelta(days=each)) for each in range(1401)]
    until = START + datetime.timedelta(days=1401)
    with pytest.raises(InputError, match="at most 1400 periods in a copy: state longer ones"):
        make(write(tmp_path / "visits.parquet", days), tmp_path / "copy", asked("day", until=until))
    assert not (tmp_path / "copy" / "manifest.json").exists()


def test_rows_carry_what_tells_two_copies_apart(tmp_path: Path) -> None:
    """All rows of a period have the build that the reference names, and check numbers whose sum the manifest states."""
    rows: list[Row] = [*random_rows(400, seed=11), ("m77", "\N{GRINNING FACE} x", None, day(2))]
    make(write(tmp_path / "visits.parquet", rows), tmp_path / "copy")
    manifest = read_manifest((tmp_path / "copy" / "manifest.json").read_bytes())
    held = rows_of(tmp_path / "copy", numbers=True)
    for each in some(manifest.periods):
        of_period = [row for row in held if row[3] == number(each.start)]
        numbers = [
            numbers_of([None if value is None else str(value) for value in row[:5]]) for row in of_period
        ]
        first, second, _ = (sum(column) for column in zip(*numbers, strict=True))
        check = sum(row[6] * (row[4] + 2**31 + 1) for row in of_period) % (2**61 - 1)
        content = PeriodContent(number(each.start), len(of_period), (first, second), check)
        assert {row[5] for row in of_period} == {each.build} == {content.build(manifest.identity)}
        assert [row[6] for row in of_period] == [row[2] for row in numbers]
        assert (each.rows, each.check_sum) == (len(of_period), check)


CHANGED: list[Row] = [
    ("ada", "x", "FR", day(1)),
    ("ada", "y", "DE", day(2)),
    ("ada", "y", "FR", day(3)),
    ("eve", "x", "US", day(3)),
    ("eve", "x", "DE", day(3)),
    ("eve", "x", None, day(3)),
]


@pytest.mark.slow
def test_members_whose_attribute_changed_may_keep_the_first_one(tmp_path: Path) -> None:
    """Each then has one row in an element and period, however many runs there were; the copy stays of that kind."""
    whole = write(tmp_path / "visits.parquet", CHANGED)
    first = replace(asked(), first_attributes=True)
    make(whole, tmp_path / "at_once", first)
    for until in (datetime.date(2024, 2, 1), datetime.date(2024, 3, 1)):
        make(whole, tmp_path / "grown", replace(first, until=until))
    with pytest.raises(InputError, match="keeps members' first attributes: state that again"):
        make(whole, tmp_path / "grown")
    make(whole, tmp_path / "grown", first)
    january, march = (number(datetime.date(2024, month, 1)) for month in (1, 3))
    february = number(datetime.date(2024, 2, 1))
    assert rows_of(tmp_path / "grown") == rows_of(tmp_path / "at_once")
    assert rows_of(tmp_path / "grown") == sorted(
        [
            ("ada", "x", "FR", january, NO_PERIOD),
            ("ada", "y", "FR", february, NO_PERIOD),
            ("ada", "y", "FR", march, february),
            ("eve", "x", "DE", march, NO_PERIOD),
        ],
        key=repr,
    )


@pytest.mark.slow
def test_older_periods_need_not_be_read(tmp_path: Path) -> None:
    """The copy is the same; what came late to them is not looked for, and what they lack is no fault.

    Rows without a time are of no period, so each run counts them.
    """
    rows = random_rows(1500, seed=2)
    make(write(tmp_path / "visits.parquet", rows), tmp_path / "whole")
    june = datetime.date(2024, 6, 1)
    make(tmp_path / "visits.parquet", tmp_path / "quick", asked(until=june))
    late: list[Row] = [("m00", "late", "FR", day(1)), (None, "x", "FR", day(1)), ("m00", "late", "FR", None)]
    source = write(tmp_path / "late.parquet", [*rows, *late])
    with pytest.raises(InputError, match="1 pairs are of periods before 2024-06-01"):
        make(source, tmp_path / "quick")
    made = make(source, tmp_path / "quick", replace(asked(), new_only=True))
    assert rows_of(tmp_path / "quick", numbers=True) == rows_of(tmp_path / "whole", numbers=True)
    assert (made.rows, made.left_out) == (
        sum(row[3] is not None and row[3] >= june for row in rows) + 1,
        LeftOut(0, 1, 0),
    )


def test_the_command_makes_a_copy_and_appends_to_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what Pinot needs beside it; a day that begins no month is refused."""
    source = write(tmp_path / "visits.parquet", ROWS)
    options = ["bound", "--input", str(source), "--member", "who", "--elements", "what", "--period", "day"]
    options += ["--calendar", "month", "--table", "visits", "--attributes", "country", "--json"]
    options += ["--pairs", str(tmp_path / "copy")]
    assert main([*options, "--until", "2024-02-01"]) == 0
    assert main([*options, "--until", "2024-03-01"]) == 0
    first, second = (json.loads(each) for each in capsys.readouterr().out.replace("}\n{", "}\0{").split("\0"))
    assert (first["pairs"], second["pairs"], second["periods"]) == (2, 1, 1)
    table = json.loads((tmp_path / "copy" / "pinot-table.json").read_bytes())
    (tree,) = table["tableIndexConfig"]["starTreeIndexConfigs"]
    assert tree["dimensionsSplitOrder"] == ["gris_period", "gris_build", "gris_previous", "country", "what"]
    schema = json.loads((tmp_path / "copy" / "pinot-schema.json").read_bytes())
    named = {each["name"] for key, fields in schema.items() if key.endswith("Specs") for each in fields}
    assert named == {"gris_period", "gris_previous", "gris_build", "gris_check", "country", "what"}
    assert main([*options, "--until", "2024-03-02"]) == 2
    assert "expected the first day of a month" in capsys.readouterr().out


def test_the_star_tree_splits_first_by_the_attribute_of_most_values(tmp_path: Path) -> None:
    """Whatever order they are stated in: a condition on it leaves out most; equals stay in the order they have."""
    day = START + datetime.timedelta(days=1)
    rows = [
        {"who": f"m{i}", "what": "x", "paid": i % 2, "city": f"c{i}", "size": i % 2, "day": day}
        for i in range(9)
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "visits.parquet")
    # A directory of this name is none of a partition.
    folder = tmp_path / "city=1"
    make(tmp_path / "visits.parquet", folder, replace(asked(), attributes=("paid", "city", "size")))
    table = json.loads((folder / "pinot-table.json").read_bytes())
    (tree,) = table["tableIndexConfig"]["starTreeIndexConfigs"]
    own = ["gris_period", "gris_build", "gris_previous"]
    assert tree["dimensionsSplitOrder"] == [*own, "city", "paid", "size", "what"]


def test_a_bounded_copy_is_no_table_to_copy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The policy would name the copy for the table, whose rows it lacks; whichever engine would make it."""
    source = write(tmp_path / "visits.parquet", ROWS)
    made = [
        "--member",
        "who",
        "--elements",
        "what",
        "--period",
        "day",
        "--calendar",
        "month",
        "--table",
        "visits",
    ]
    bounded = str(tmp_path / "bounded.parquet")
    assert main(["bound", "--input", str(source), *made, "--delta0", "2", "--out", bounded]) == 0
    for engine in ("duckdb", "spark"):
        pairs = ["--pairs", str(tmp_path / "copy"), "--engine", engine]
        assert main(["bound", "--input", bounded, *made, *pairs]) == 2
        assert "--input: it is a bounded copy" in " ".join(capsys.readouterr().err.split())
        assert not (tmp_path / "copy" / "manifest.json").exists()


@pytest.mark.slow
def test_nanoseconds_are_of_the_day_that_questions_see_them_in(tmp_path: Path) -> None:
    """A cast would round the last ones of a month up into the next one, which no question does."""
    midnight = int(datetime.datetime(2024, 2, 1, tzinfo=datetime.UTC).timestamp()) * 10**9
    before_1970 = -1
    times = [midnight - 1, midnight, before_1970, 2**63 - 1, None]
    at = pa.array(times, pa.int64()).cast(pa.timestamp("ns"))
    members = [f"m{number}" for number in range(len(times))]
    pq.write_table(
        pa.table({"who": members, "what": ["x"] * len(times), "country": ["FR"] * len(times), "at": at}),
        tmp_path / "visits.parquet",
    )
    first = PairsCopyRequest(
        "visits", Columns("who", ("what",), "at", "month", "UTC"), ("country",), None, day(2).replace(day=1)
    )
    made = make(tmp_path / "visits.parquet", tmp_path / "copy", first)
    assert (made.pairs, made.left_out, made.rows_of_open_periods) == (2, LeftOut(0, 2, 0), 1)
    more = replace(first, until=UNTIL, new_only=True)
    assert make(tmp_path / "visits.parquet", tmp_path / "copy", more).left_out == LeftOut(0, 2, 0)
    assert {row[0]: row[3] for row in rows_of(tmp_path / "copy")} == {
        "m0": number(datetime.date(2024, 1, 1)),
        "m1": number(datetime.date(2024, 2, 1)),
        "m2": number(datetime.date(1969, 12, 1)),
    }


@pytest.mark.parametrize("stored", ["ms", "int96"])
@pytest.mark.parametrize("latest", [1_711_584_000_000, -(2**63)])
def test_times_that_one_row_can_break_are_refused_by_the_schema(
    tmp_path: Path, stored: str, latest: int
) -> None:
    """As the period's column; where another column has the periods, it is not read."""
    source = tmp_path / "visits.parquet"
    write_times(source, latest, stored)
    by_time = PairsCopyRequest("visits", Columns("who", ("what",), "at", "month", "UTC"), (), None, UNTIL)
    with pytest.raises(InputError, match=r"^column at: .* one row can break, .*TIMESTAMP\(MICROS\)$"):
        make(source, tmp_path / "copy", by_time)
    days = pa.array([START] * 10, pa.date32())
    pq.write_table(
        pq.read_table(source).append_column("day", days),
        source,
        use_deprecated_int96_timestamps=stored == "int96",
    )
    made = make(
        source, tmp_path / "by day", replace(by_time, columns=Columns("who", ("what",), "day", "month"))
    )
    assert made.pairs == 10
