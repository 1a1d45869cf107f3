"""`gris demo` and `gris serve`: the first things that anybody runs."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import grpc
import pytest
from gris_api.dp.v1 import question_pb2

from gris_cli.__main__ import main
from pinot_connector import PrivateClient, PrivateResult
from tests.support.command_line import run_json
from tests.support.rings import needs

GRIS = (sys.executable, "-m", "gris_cli")


@pytest.fixture(scope="module")
@needs("process")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What one run of the demonstration tells as JSON."""
    directory = tmp_path_factory.mktemp("demo")
    # A table that its user's `gris plan` has kept would make the guarantee a better one.
    done = subprocess.run(
        [*GRIS, "demo", "--json", "--directory", str(directory)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "XDG_CACHE_HOME": str(directory / "cache")},
    )
    assert done.stderr == ""
    return {**json.loads(done.stdout), "directory": directory}


def test_five_questions_use_all_four_mechanisms(reported: Any) -> None:
    """Each has rows, and each was charged what it cost."""
    results = [question["result"] for question in reported["questions"]]
    assert [each["mechanism"] for each in results] == [
        "UnkGumb",
        "UnkLap",
        "KnownGumb",
        "KnownLap",
        "UnkGumb",
    ]
    assert all(each["rows"] and each["charged"] == each["cost"] for each in results)


def test_bounded_contributions_find_more_for_less(reported: Any) -> None:
    """The same top 50 by UnkGumb, which finds some of it, and of bounded contributions, for a fixed price."""
    unbounded, bounded = reported["compared"]["results"]
    assert ["UnkGumb", "BoundGauss"] == [unbounded["mechanism"], bounded["mechanism"]]
    assert len(unbounded["rows"]) < len(bounded["rows"]) == 50
    assert (bounded["cost"]["information"], bounded["cost"]["calls"]) == (20, 1)
    assert unbounded["cost"]["information"] > 40
    assert bounded["parameters"]["bounded"]["names_look"]["max_names"] == 75


def test_the_guarantee_is_that_of_the_company_whose_costs_show(reported: Any) -> None:
    """Beside the account's own; together the company's analysts have 9000 units and 90 calls."""
    guarantee = reported["guarantee"]
    own, shared = guarantee["own"], guarantee["shared"]
    assert ("costs", ["demo", "analyst"], ["demo"]) == (guarantee["sharing"], own["path"], shared["path"])
    assert (33.79, 69.66) == tuple(
        math.ceil(100 * each["guarantee"]["epsilon"]) / 100 for each in (own, shared)
    )


def test_asking_again_is_identical_and_free(reported: Any) -> None:
    """The same rows under the same release, charged 0."""
    repeated = reported["repeated"]
    assert repeated["identical"]
    assert reported["questions"][0]["result"]["rows"] == repeated["result"]["rows"]
    assert (repeated["result"]["charged"]["information"], repeated["result"]["charged"]["calls"]) == (0, 0)


def test_the_small_account_is_refused_in_the_end(reported: Any) -> None:
    """It got answers first, and the refusal says what is missing until when."""
    small = reported["small_account"]
    assert small["answered"] >= 1
    (shortfall, *_) = small["refusal"]["error"]["shortfalls"]
    assert shortfall["requested"] > shortfall["remaining"]
    assert shortfall["refreshes_at"]


def test_the_directory_keeps_a_key_for_its_owner_only(reported: Any) -> None:
    """With it, another engine gives the same answers."""
    path = Path(reported["noise_key"]["path"])
    assert reported["noise_key"]["made"]
    assert (reported["directory"], 0o600) == (path.parent, stat.S_IMODE(path.stat().st_mode))


@pytest.mark.usefixtures("starts_processes")
def test_the_text_fits_100_columns(capsys: pytest.CaptureFixture[str]) -> None:
    """For people: five tables, the repetition, the refusal, and what became of the key."""
    assert main(["demo"]) == 0
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 100
    words_of_it = " ".join(printed.split())
    for words in (
        "Real data",
        "noise key",
        "the identical answer",
        "50 found for 20 information and 1 call. Counts are of bounded contributions",
        "asks until its budget refuses",
        "refreshed",
        "counts that hardly sufficed for that say little",
    ):
        assert words in words_of_it


@pytest.mark.usefixtures("starts_processes")
def test_another_answer_to_the_same_question_fails_the_demonstration(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever runs the demonstration as a check learns it from the exit code."""
    ask = PrivateClient.ask
    numbers = itertools.count()

    def ask_for_another(client: PrivateClient, question: question_pb2.Question) -> PrivateResult:
        return dataclasses.replace(ask(client, question), release_id=f"{next(numbers):064}")

    monkeypatch.setattr(PrivateClient, "ask", ask_for_another)
    assert run_json(capsys, "demo", code=1)["repeated"]["identical"] is False


def test_examples_that_are_not_there_are_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message says how to name them."""
    assert main(["demo", "--examples", str(tmp_path)]) == 2
    assert "--examples" in capsys.readouterr().err


FREE_PORTS = ("--dp-port", "0", "--budget-port", "0", "--admin-port", "0")


@pytest.mark.usefixtures("starts_processes")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serving_ends_with_a_signal_and_leaves_nothing_running(
    tmp_path: Path, number: signal.Signals
) -> None:
    """Both services answer until then."""
    with subprocess.Popen(
        [*GRIS, "serve", "--json", "--directory", str(tmp_path), *FREE_PORTS],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        addresses = json.loads(process.stdout.readline())
        assert {"dp", "budget", "admin"} == addresses.keys()
        assert all(_listens(address) for address in addresses.values())
        process.send_signal(number)
        assert process.wait(20) == 0
    assert not any(_listens(address) for address in addresses.values())


def _listens(address: str) -> bool:
    with grpc.insecure_channel(address) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=1)
        except grpc.FutureTimeoutError:
            return False
    return True


@pytest.mark.usefixtures("starts_processes")
def test_one_embedded_question_needs_no_service(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`gris ask --embedded` starts what it needs, on the example data."""
    question = ("--table", "cofacts_feedback", "--by", "score", "--k", "1")
    answer = run_json(capsys, "ask", *question, "--embedded", "--directory", tmp_path)
    assert answer["rows"][0]["element"] == [1]
