"""What the connector tells of its work: request ids, and spans only where OpenTelemetry is."""

from __future__ import annotations

import subprocess
import sys

import pytest
from gris_api.budget.v1 import budget_pb2

from pinot_connector import telemetry
from pinot_connector.errors import InvalidQuestion

REQUEST = budget_pb2.GetBudgetRequest()


def sent_id() -> str:
    """Return the request id that a call would be sent with."""
    with telemetry.remote_call(REQUEST) as metadata:
        return dict(metadata)[telemetry.REQUEST_ID_KEY]


def test_all_calls_of_a_question_have_one_id_and_other_questions_have_others() -> None:
    """And a call outside of any question has one of its own."""
    with telemetry.question():
        one = {sent_id(), sent_id()}
    with telemetry.question():
        other = {sent_id(), sent_id()}
    assert (len(one), len(other), len(one | other | {sent_id(), sent_id()})) == (1, 1, 4)


def test_an_application_names_its_questions() -> None:
    """Until its block ends."""
    with telemetry.request_id("4711-a"):
        with telemetry.question():
            assert sent_id() == "4711-a"
        assert sent_id() == "4711-a"
    assert sent_id() != "4711-a"


@pytest.mark.parametrize("wrong", ["", "a b", 'a"b', "a\nb", "\u00e4", "x" * 129, 7, None])
def test_a_name_that_cannot_be_sent_is_refused(wrong: object) -> None:
    """With its field and what was expected."""
    with pytest.raises(InvalidQuestion, match="1 to 128 printable ASCII") as error:
        telemetry.request_id(wrong).__enter__()  # type: ignore[arg-type]
    assert error.value.field == "request_id"


@pytest.mark.usefixtures("starts_processes")
def test_without_opentelemetry_only_the_id_is_sent() -> None:
    """Nothing of it is needed to import the connector, to ask, or to fail."""
    program = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from pinot_connector import telemetry, AsyncPrivateClient\n"
        "from gris_api.budget.v1 import budget_pb2\n"
        "try:\n"
        "    with telemetry.question(), telemetry.engine_call('e', 'run'):\n"
        "        with telemetry.remote_call(budget_pb2.GetBudgetRequest()) as metadata:\n"
        "            print([key for key, _ in metadata])\n"
        "        raise ValueError\n"
        "except ValueError: print('as it was')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "['x-request-id']\nas it was\n"
