"""Asks the questions of a file by curl; prints a line of JSON for each step, with the answer as it came."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def main(file: str) -> None:
    """Ask everything."""
    asked = json.loads(Path(file).read_text())
    known, poor = (f"{asked[f'{who}account']}:{asked[f'{who}token']}" for who in ("", "poor_"))

    def step(name: str, path: str, *words: str, user: str = known) -> None:
        command = ["curl", "--silent", "--show-error", "--user", user, *words, f"{asked['url']}{path}"]
        answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        print(json.dumps({"step": name, "answer": json.loads(answer)}), flush=True)

    step("connect", "/query/sql", "--get", "--data-urlencode", "sql=SELECT 1")
    step("tables", "/tables")
    step("columns", f"/tables/{asked['table']}/schema")
    for name in ("top", "series", "sum", "refused"):
        step(name, "/query/sql", "--data", json.dumps({"sql": asked[name]}))
    step("exhausted", "/query/sql", "--data", json.dumps({"sql": asked["top"]}), user=poor)
    step("again", "/query/sql", "--data", json.dumps({"sql": asked["top"]}))


if __name__ == "__main__":
    main(sys.argv[1])
