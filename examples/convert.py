"""Makes the example tables of this folder from the files their authors published.

    python examples/convert.py --cofacts feedbacks-20190414.zip --online-retail online_retail.csv.gz

Both options may be given alone. The rows are sorted by every column and written by one thread, so that the
same input gives the same bytes with the same release of DuckDB: a file's hash is its table's data version.
"""

import argparse
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import duckdb

FOLDER = Path(__file__).resolve().parent

# Sixteen hexadecimal characters of the published hash still tell all 24,587 members apart, as is checked.
# The app is no part of the identity: one hash in two apps is then one member, protected for both together.
COFACTS = """
    WITH feedback AS (
        SELECT articleId AS article_id,
               left(userIdsha256, 16) AS member_id,
               CAST(score AS BIGINT) AS score,
               appId AS app,
               CAST(strptime(createdAt, '%Y-%m-%dT%H:%M:%S.%gZ') AS DATE) AS day
        FROM raw
    )
    SELECT *, strftime(min(day) OVER (PARTITION BY member_id), '%Y-%m') AS cohort
    FROM feedback
    ORDER BY ALL
"""

# A purchase without a customer number has no member whom it could be counted for.
ONLINE_RETAIL = """
    SELECT split_part(CustomerID, '.', 1) AS member_id,
           StockCode AS stock_code,
           Country AS country,
           CAST(CAST(InvoiceDate AS TIMESTAMP) AS DATE) AS day,
           CAST(Quantity AS BIGINT) AS quantity
    FROM raw
    WHERE CustomerID IS NOT NULL
    ORDER BY ALL
"""


def convert_cofacts(published: Path, target: Path) -> None:
    """Write the readers' feedback of the zip file `published` to the Parquet file `target`."""
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(published) as archive:
        source = Path(archive.extract("article_reply_feedbacks.csv", folder))
        with _open_csv(source) as connection:
            _require(connection, "count(DISTINCT userIdsha256) = count(DISTINCT left(userIdsha256, 16))")
            _write(connection, COFACTS, target)


def convert_online_retail(published: Path, target: Path) -> None:
    """Write the purchases of known customers in the CSV file `published` to the Parquet file `target`."""
    with _open_csv(published) as connection:
        _require(connection, "count(*) FILTER (CustomerID NOT SIMILAR TO '[0-9]+\\.0') = 0")
        _write(connection, ONLINE_RETAIL, target)


def _open_csv(source: Path) -> duckdb.DuckDBPyConnection:
    """Return a connection with the CSV file as the table `raw`, all of it text."""
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    # The dialect is stated, not guessed: comments hold line breaks and quotes, which guessing gets wrong.
    connection.execute(
        "CREATE TABLE raw AS SELECT * FROM read_csv("
        "?, header = true, all_varchar = true, delim = ',', quote = '\"', escape = '\"', parallel = false)",
        [str(source)],
    )
    return connection


def _require(connection: duckdb.DuckDBPyConnection, condition: str) -> None:
    """Stop unless `condition`, an aggregate over the raw rows, is true."""
    row = connection.execute(f"SELECT {condition} FROM raw").fetchone()  # noqa: S608 - a constant of this file
    if row != (True,):
        raise ValueError(f"the published file is not as expected: {condition}")


def _write(connection: duckdb.DuckDBPyConnection, query: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    connection.execute(f"CREATE TABLE converted AS {query}")
    connection.table("converted").write_parquet(str(target), compression="zstd")


def main(arguments: Sequence[str] | None = None) -> None:
    """Convert the files named on the command line."""
    parser = argparse.ArgumentParser(description="Make the example tables from the published files.")
    parser.add_argument("--cofacts", type=Path, metavar="ZIP", help="article_reply_feedbacks, zipped")
    parser.add_argument("--online-retail", type=Path, metavar="CSV", help="Online Retail, may be compressed")
    parser.add_argument("--output", type=Path, default=FOLDER, help="where to write (default: this folder)")
    chosen = parser.parse_args(arguments)
    if chosen.cofacts:
        convert_cofacts(chosen.cofacts, chosen.output / "cofacts" / "feedback.parquet")
    if chosen.online_retail:
        convert_online_retail(chosen.online_retail, chosen.output / "online_retail" / "purchases.parquet")


if __name__ == "__main__":
    main()
