"""Answers questions by SmartNoise SQL in an interpreter of its own, whose OpenDP is older than that of the benchmark.

A line of JSON for each question comes in, and one for its answer or error goes out, until there are no more.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def main() -> None:
    """Answer lines; what libraries print goes where errors go."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    sys.stdout = sys.stderr
    for line in sys.stdin:
        said: dict[str, object]
        try:
            said = {"found": answered(json.loads(line))}
        except Exception as error:
            said = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(said) + "\n")
        answers.flush()


def answered(asked: dict[str, Any]) -> dict[str, float]:
    """Return the numbers by key, or by 0 where there are no keys."""
    import pandas as pd  # noqa: PLC0415 - an error is an answer
    import snsql  # noqa: PLC0415

    frame = pd.DataFrame(asked["rows"])
    columns = {"member": {"type": "string", "private_id": True}, "key": {"type": "string"}}
    if "amount" in frame:
        lower, upper = asked["bounds"]
        columns["amount"] = {"type": "float", "lower": lower, "upper": upper}
    table = {"max_ids": asked["max_ids"], "censor_dims": asked["censor_dims"], **columns}
    privacy = snsql.Privacy(epsilon=asked["epsilon"], delta=asked["delta"])
    if asked["gaussian"]:
        for stat in privacy.mechanisms.map:
            privacy.mechanisms.map[stat] = snsql.Mechanism.gaussian
    reader = snsql.from_df(frame, privacy=privacy, metadata={"": {"db": {"answers": table}}})
    if asked["by_key"]:
        _, *rows = reader.execute(f"SELECT key, {asked['measure']} AS found FROM db.answers GROUP BY key")  # noqa: S608
    else:
        _, *rows = reader.execute(f"SELECT '0', {asked['measure']} AS found FROM db.answers")  # noqa: S608
    return {key: float(value) for key, value in rows}


if __name__ == "__main__":
    main()
