"""`gris why` prints a refusal as it was said."""

from __future__ import annotations

import pytest
from gris_api.app.v1 import app_pb2

from gris_cli.refusals import Needed, print_refusal


def test_what_points_at_a_place_in_a_question_stands_in_lines_of_its_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The place is below the words, in what was refused and in what would be now."""
    message = "sql: expected a column\n  SELECT nothing FROM feedback\n         ^"
    refused = app_pb2.GetRefusalResponse(refusal=app_pb2.Refusal(reason="INVALID_QUESTION", message=message))
    print_refusal(refused, Needed(refusal=message), as_json=False)
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    places = [number for number, line in enumerate(lines) if "SELECT" in line]
    assert [7, 7] == [lines[each + 1].index("^") - lines[each].index("SELECT") for each in places]
