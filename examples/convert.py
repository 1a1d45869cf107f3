"""Makes the example tables of this folder from the files their authors published.

    python examples/convert.py --cofacts feedbacks-20190414.zip --online-retail online_retail.csv.gz \
        --ubuntu-irc ubuntu_irc_ascii.tar.gz

Each option may be given alone. The rows are sorted by every column and written by one thread, so that the
same input gives the same bytes with the same release of DuckDB: a file's hash is its table's data version.
"""

import argparse
import hashlib
import re
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb
import numpy as np

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

# [15:29] <nick> words
IRC_LINE = re.compile(r"\[[0-9:]+\] <([^>]+)> (.*)")
IRC_URL = re.compile(r"(?:https?|ftp)://\S+|www\.\S+")
IRC_WORD = re.compile(r"[a-z0-9]+(?:['-][a-z0-9]+)*")


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


def convert_ubuntu_irc(published: Path, target: Path) -> None:
    """Write who used which word how often in the chat logs of the tar file `published` to the file `target`."""
    spoken = list(_words(published))
    # Numbers in the order of a hash: neither a name nor its rank in the alphabet is left.
    nicks = sorted({nick for nick, _ in spoken}, key=lambda nick: hashlib.sha256(nick.encode()).digest())
    numbers = {nick: number for number, nick in enumerate(nicks)}
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        columns = {
            "member_id": np.array([numbers[nick] for nick, _ in spoken], dtype=np.int64),
            "word": np.array([word for _, word in spoken], dtype=object),
        }
        connection.register("spoken", columns)
        _write(connection, "SELECT member_id, word FROM spoken ORDER BY ALL", target)


def _words(published: Path) -> Iterator[tuple[str, str]]:
    """Yield nick and word for every word of every message: lower-case tokens, without URLs."""
    with tarfile.open(published) as archive:
        for name in sorted(each for each in archive.getnames() if each.endswith(".ascii.txt")):
            stream = archive.extractfile(name)
            for line in () if stream is None else stream.read().decode(errors="replace").splitlines():
                if found := IRC_LINE.fullmatch(line):
                    yield from (
                        (found[1], word) for word in IRC_WORD.findall(IRC_URL.sub(" ", found[2].lower()))
                    )


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
    parser.add_argument(
        "--ubuntu-irc", type=Path, metavar="TAR", help="irc-disentanglement's plain chat logs"
    )
    parser.add_argument("--output", type=Path, default=FOLDER, help="where to write (default: this folder)")
    chosen = parser.parse_args(arguments)
    if chosen.cofacts:
        convert_cofacts(chosen.cofacts, chosen.output / "cofacts" / "feedback.parquet")
    if chosen.online_retail:
        convert_online_retail(chosen.online_retail, chosen.output / "online_retail" / "purchases.parquet")
    if chosen.ubuntu_irc:
        convert_ubuntu_irc(chosen.ubuntu_irc, chosen.output / "ubuntu_irc" / "words.parquet")


if __name__ == "__main__":
    main()
