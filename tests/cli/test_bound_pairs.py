"""`gris bound --pairs`: each member, element and period once, linked to the one before; closed periods are appended."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dp_service.queries.pairs_manifest import NO_PERIOD, LeftOut, read_manifest
from gris_cli.__main__ import main
from gris_cli.bound.source import InputError
from tests.support.pairs_copies import UNTIL, Row, asked, make, random_rows, rows_of, write

EPOCH = datetime.date(1970, 1, 1)


def number(day: datetime.date) -> int:
    """Return a day as a copy holds it."""
    return (day - EPOCH).days


def reference(rows: list[Row], until: datetime.date = UNTIL) -> list[tuple[object, ...]]:
    """Return the rows of a monthly copy, from what it is defined to be."""
    periods: dict[tuple[str | None, ...], set[int]] = {}
    for who, what, country, day in rows:
        if who not in (None, "null") and what is not None and day is not None and day < until:
            periods.setdefault((who, what, country), set()).add(number(day.replace(day=1)))
    return sorted(
        (
            (*pair, period, max((each for each in found if each < period), default=NO_PERIOD))
            for pair, found in periods.items()
            for period in found
        ),
        key=repr,
    )


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


@pytest.mark.parametrize(("rows", "message"), BAD.values(), ids=BAD)
def test_what_does_not_fit_the_copy_leaves_it_as_it_was(
    copy: Path, tmp_path: Path, rows: list[Row], message: str
) -> None:
    """The owner is told where; no value is repeated."""
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
    """A file was replaced; or a row says another period before than the rows do, under a manifest of its own."""
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
    with pytest.raises(InputError, match="2 rows whose gris_previous is wrong"):
        make(source, copy, april)
    with pytest.raises(InputError, match="made with another calendar"):
        make(source, copy, asked("week", until=datetime.date(2024, 4, 1)))


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
    assert tree["dimensionsSplitOrder"] == ["gris_period", "gris_previous", "country", "what"]
    schema = json.loads((tmp_path / "copy" / "pinot-schema.json").read_bytes())
    named = {each["name"] for key in ("dimensionFieldSpecs", "dateTimeFieldSpecs") for each in schema[key]}
    assert named == {"gris_period", "gris_previous", "country", "what"}
    assert main([*options, "--until", "2024-03-02"]) == 2
    assert "expected the first day of a month" in capsys.readouterr().out
