"""`gris ask` and `gris explain`: what they print, and the exit code of each outcome."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gris_cli.__main__ import main
from gris_cli.terminal import print_json
from pinot_connector.explanation_rows import MOST_SENTENCES, PRICE, VERDICT
from tests.support.command_line import run_text
from tests.support.fake_pinot import FakePinot, refusing_server, renamed
from tests.support.ports import free_port
from tests.support.world import World, new_account

ARTICLES = (
    "SELECT article_id, COUNT(DISTINCT member_id) FROM feedback GROUP BY article_id ORDER BY 2 DESC LIMIT 5"
)
PINOT = ("--engine", "pinot", "--pinot-broker", "http://b", "--pinot-controller", "http://c")
QUESTION = ("--table", "feedback", "--by", "article_id", "--k", "5")


@pytest.fixture(autouse=True)
def _no_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes away the variables that stand for flags."""
    for name in ("PINOT_BROKER", "PINOT_CONTROLLER", "GRIS_DP", "GRIS_BUDGET", "GRIS_ACCOUNT"):
        monkeypatch.delenv(name, raising=False)


def _connection(world: World, account: str = "") -> list[str]:
    return [
        *("--dp", world.dp, "--budget", world.budget, "--account", account or new_account()),
        *("--data", f"feedback={world.tables['feedback']}"),
    ]


def _json(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    """Runs a command with --json; whatever it prints must be one JSON object and nothing else."""
    code = main([*arguments, "--json"])
    printed = capsys.readouterr()
    assert printed.err == ""
    return code, json.loads(printed.out)


def test_asking_prints_the_whole_result_as_json(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """Rows, price and what is left, for programs."""
    code, reported = _json(capsys, "ask", *QUESTION, *_connection(world))
    assert (code, reported["mechanism"], len(reported["rows"])) == (0, "UnkGumb", 5)
    assert reported["cost"] == reported["charged"]
    assert reported["remaining"]


def test_asking_prints_a_table_for_people(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """A line an element, the interval's meaning, the price, and no line wider than 100 columns; more if wanted."""
    assert main(["ask", *QUESTION, *_connection(world)]) == 0
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 100
    for words in ("noisy count", "95 % interval", "11 information and 1 call", "left"):
        assert words in printed
    assert "UnkGumb" not in printed
    assert "UnkGumb" in run_text(capsys, "ask", *QUESTION, "--verbose", *_connection(world))


def test_flags_and_sql_ask_the_same_question(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """The second face of the question is free, for it is the same one."""
    account = new_account()
    sql = ARTICLES.replace("GROUP", "WHERE score = 1 AND app IN ('WEBSITE', 'RUMORS_LINE_BOT') GROUP")
    where = ("--where", "score=1", "--where", "app = 'WEBSITE' OR app = 'RUMORS_LINE_BOT'")
    _, first = _json(capsys, "ask", *QUESTION, *where, *_connection(world, account))
    _, again = _json(capsys, "ask", "--sql", sql, *_connection(world, account))
    assert first["rows"] == again["rows"]
    assert again["charged"]["information"] == 0


def test_a_limit_that_the_policy_lowers_is_told(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """With the price and with the result, for people and for programs."""
    sql = ARTICLES.replace("LIMIT 5", "LIMIT 50000")
    lowered = "The question asks for 50000 elements; the policy shows at most 100."
    assert lowered in run_text(capsys, "ask", "--sql", sql, *_connection(world))
    assert lowered in run_text(capsys, "explain", "--sql", sql, "--dp", world.dp)
    _, reported = _json(capsys, "explain", "--sql", sql, "--dp", world.dp)
    assert 50_000 == reported["requested_k"]


@pytest.mark.parametrize("text", ["SELECT 1", " select\n1 ;"])
@pytest.mark.parametrize("command", ["ask", "explain"])
def test_the_check_that_a_connection_lives_asks_no_service(
    capsys: pytest.CaptureFixture[str], command: str, text: str
) -> None:
    """It is answered as by the DB-API: with its one row, for nothing, where no service is either."""
    nowhere = ("--dp", "localhost:1", "--budget", "localhost:1", "--sql", text)
    assert main([command, *nowhere]) == 0
    assert "gris catalog" in capsys.readouterr().out
    assert main([command, *nowhere, "--json"]) == 0
    assert {"rows": [{"element": [1], "noisy_count": None, "interval": None}], "cost": None} == json.loads(
        capsys.readouterr().out
    )
    assert main([command, *nowhere, "--k", "3"]) == 2
    assert "--sql is the whole question" in capsys.readouterr().err


def test_explaining_needs_no_account(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """The price and the sentences, before anything is asked."""
    code, reported = _json(capsys, "explain", *QUESTION, "--dp", world.dp)
    assert (code, reported["worst_case_cost"]["information"]) == (0, 11)
    assert main(["explain", "--sql", ARTICLES, "--dp", world.dp]) == 0
    assert "costs at most" in capsys.readouterr().out


def test_explaining_to_an_account_says_what_part_of_its_budget_a_question_is(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of every level and unit, of the limit and of what is left; the one that ends first decides."""
    connection = _connection(world, new_account())
    _json(capsys, "ask", *QUESTION, *connection)
    _, reported = _json(capsys, "explain", "--sql", ARTICLES, *connection)
    *_, information, calls = reported["shares"]
    assert ("information", 11, 3000, 2989, "11/3000") == tuple(
        information[name] for name in ("unit", "cost", "limit", "remaining", "of_limit")
    )
    assert information == reported["narrowest"]
    assert ("calls", 1, 299) == (calls["unit"], calls["cost"], calls["remaining"])
    said = run_text(capsys, "explain", "--sql", ARTICLES, *connection)
    assert "11 of 2,989 that are left (0.367 % of the limit of 3,000)" in said
    assert "enough for 271 questions like this one, by the information of t/" in said
    assert "is free while the data stay the same" in said


def test_explaining_to_an_account_without_a_budget_is_an_error(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """A price without the budget that was named would look as if anything could be paid."""
    connection = _connection(world, "nobody/knows")
    code, reported = _json(capsys, "explain", *QUESTION, *connection)
    assert "account_unknown" == reported["error"]["code"]
    assert code != 0


def test_the_servers_of_pinot_are_asked_what_they_have_loaded(
    world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment names their port; a question fails if a server refuses, and the message says so."""
    fake = FakePinot()
    fake.replies = renamed(fake.replies, "feedback")
    with fake.serving(), refusing_server(fake) as port:
        monkeypatch.setenv("PINOT_BROKER", fake.url)
        monkeypatch.setenv("PINOT_CONTROLLER", fake.url)
        monkeypatch.setenv("PINOT_SERVER_ADMIN", "true")
        monkeypatch.setenv("PINOT_SERVER_ADMIN_PORT", str(port))
        services = ("--dp", world.dp, "--budget", world.budget, "--account", new_account())
        _, reported = _json(capsys, "ask", *QUESTION, *services, "--engine", "pinot")
    assert "a server of Pinot does not accept our credentials" == reported["error"]["message"]


@pytest.mark.parametrize(
    ("arguments", "code", "name"),
    [
        (("--sql", "SELECT"), 2, "invalid_question"),
        ((*QUESTION[:4], "--k", "0"), 2, "invalid_question"),
        ((*QUESTION, "--where", "member_id='x'"), 3, "refused_by_policy"),
        ((*QUESTION, "--where", "nonsense"), 3, "refused_by_policy"),
        ((*QUESTION, "--from", "yesterday"), 2, "usage"),
        ((*QUESTION, "--sql", ARTICLES), 2, "usage"),
        (("--sql", ARTICLES, "--account", "t/half \ud83d"), 2, "invalid_question"),
        (("--sql", ARTICLES, "--max-cost", "3"), 2, "invalid_question"),
        (("--by", "app"), 2, "usage"),
        (("--table", "feedback", "--k", "3"), 2, "usage"),
        ((*QUESTION, "--no-such-flag"), 2, "usage"),
        ((*QUESTION, "--account", "stranger"), 2, "account_unknown"),
        ((*QUESTION, "--account", "poor/analyst"), 4, "budget_exhausted"),
        ((*QUESTION, "--engine", "pinot"), 2, "usage"),
        ((*QUESTION, *PINOT, "--pinot-settle-seconds", "-1"), 2, "usage"),
        ((*QUESTION, *PINOT, "--pinot-server-admin-port", "7443"), 2, "usage"),
        ((*QUESTION, "--data", "feedback=/nowhere.parquet"), 2, "usage"),
    ],
)
def test_every_refusal_has_its_exit_code(
    world: World,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    code: int,
    name: str,
) -> None:
    """As JSON on standard output, and without --json as one line on standard error; two more point into SQL."""
    command = ["ask", *_connection(world), *arguments]
    given, reported = _json(capsys, *command)
    assert (code, name) == (given, reported["error"]["code"])
    assert main(command) == code
    printed = capsys.readouterr()
    assert (printed.out, len(printed.err.splitlines())) == (
        "",
        3 if {"SELECT", "--where"} & {*arguments} else 1,
    )


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--k", "0"), "--k: expected "),
        (
            ("--from", "2019-01-01T06:00:00"),
            "--from: expected a datetime with a time zone",
        ),
        (("--to", "2019-01-01T06:00:00"), "--to: expected a datetime with a time zone"),
        (("--from", "0001-01-01T00:00:00+14:00"), "--from: expected times in the years 1 to 9999 of UTC"),
        (
            ("--k", "3", "--from", "2019-02-01", "--to", "2019-01-01"),
            "--from, --to: day: the conditions on this column",
        ),
        (("--where", "score='x'"), "--where: line 1, column 8: score: expected integers"),
        (("--where", "day='x'"), "--where: line 1, column 6: expected days"),
    ],
)
def test_what_is_wrong_with_a_question_is_said_of_the_flag(
    world: World, capsys: pytest.CaptureFixture[str], flags: tuple[str, ...], expected: str
) -> None:
    """The error does not name the field of a message that nobody typed; programs get the field too."""
    for command in ("ask", "explain"):
        asked = [command, *QUESTION[:4], *flags, *_connection(world)]
        assert main(asked) == 2
        assert f"invalid question: {expected}" in capsys.readouterr().err
        assert _json(capsys, *asked)[1]["error"]["field"].partition(".")[0] in (
            "k",
            "time_range",
            "condition",
            "filters",
        )


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--by", "app,cohort"), "--by names one column; for several columns it is repeated"),
        (("--k", "five"), "Invalid value for '--k': expected a whole number, got 'five'\n"),
        (("--data", "feedback.parquet"), "--data expects TABLE=PATH, such as feedback=feedback.parquet, got"),
        (("--account", ""), "--account: expected an account such as acme/ana, got an empty text"),
        (("--dp", "http://localhost:1"), "--dp or GRIS_DP expects HOST:PORT, without http://"),
        (("--table", "wide"), "--data names feedback, and the question is about wide"),
    ],
)
def test_a_wrong_flag_says_what_to_write_instead(
    world: World, capsys: pytest.CaptureFixture[str], flags: tuple[str, str], expected: str
) -> None:
    """In the words of the command line, and not of the library that reads it."""
    given = [*_connection(world)[:6], *QUESTION]
    data = () if flags[0] == "--data" else _connection(world)[6:]
    assert main(["ask", *given, *data, *flags]) == 2
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize(
    ("account", "expected"),
    [
        (
            "stranger/x",
            "account unknown: stranger/x has no budget; --account or GRIS_ACCOUNT says whose pays",
        ),
        ("t//x", "invalid question: --account or GRIS_ACCOUNT, part 2 of t//x: must have 1 to 128 bytes"),
    ],
)
def test_an_account_that_cannot_pay_is_named(
    world: World, capsys: pytest.CaptureFixture[str], account: str, expected: str
) -> None:
    """With the flag and the variable that name it, by every command that has one."""
    connection = _connection(world, account)
    for command in (("ask", *QUESTION, *connection), ("remaining", *connection[2:6])):
        assert main([*command]) == 2
        assert expected in capsys.readouterr().err


def test_another_service_at_an_address_is_told_from_one_that_refuses(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the address, what sets it, and which service is expected there."""
    other = f"another service answers at {world.budget}"
    assert main(["catalog", "--dp", world.budget]) == 1
    assert f"dp_service: {other}; --dp or GRIS_DP says where it is" in capsys.readouterr().err
    connection = [*_connection(world), "--dp", world.budget]
    assert main(["ask", *QUESTION, *connection]) == 1
    said = capsys.readouterr().err
    assert f"dp_service: {other}, which is also where budget_service is expected; --dp or GRIS_DP" in said


@pytest.mark.parametrize(
    "flag",
    [
        ("--table", "feedback"),
        ("--by", "app"),
        ("--k", "0"),
        ("--where", "score=1"),
        ("--from", "2019-01-01"),
        ("--to", "2019-01-01"),
        ("--count", "distinct_members"),
    ],
)
def test_a_flag_beside_sql_is_named_instead_of_ignored(
    world: World, capsys: pytest.CaptureFixture[str], flag: tuple[str, ...]
) -> None:
    """If it were ignored, a caller with --k beside SQL would pay for more."""
    for command in ("ask", "explain"):
        code, reported = _json(capsys, command, "--sql", ARTICLES, *flag, *_connection(world))
        assert (code, reported["error"]["code"]) == (2, "usage")
        assert flag[0] in reported["error"]["message"]


def test_a_question_that_costs_more_than_it_may_names_its_price(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the flag that says how much it may cost."""
    expected = "--max-cost: the question may cost 11 information units and 1 call, and at most 3 are allowed"
    for command in ("ask", "explain"):
        assert main([command, *QUESTION, "--max-cost", "3", *_connection(world)]) == 2
        assert expected in capsys.readouterr().err
        assert main([command, *QUESTION, "--max-cost", "-3", *_connection(world)]) == 2
        assert "--max-cost: expected a whole number" in capsys.readouterr().err
    assert main(["explain", *QUESTION, "--max-cost", "11", *_connection(world)]) == 0


def test_gris_alone_is_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is wrong with asking what there is; and the exit codes are part of it."""
    assert main([]) == 0
    alone = capsys.readouterr()
    assert main(["--help"]) == 0
    assert ("", capsys.readouterr().out) == (alone.err, alone.out)
    reported = " ".join(alone.out.split())
    assert "1 anything unexpected, or refused by an engine or a service" in reported


def test_explaining_says_a_verdict_the_price_and_a_few_sentences(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """The price has one place, one call is not 1 calls, and how numbers are made is left to programs."""
    reported = run_text(capsys, "explain", "--sql", ARTICLES, "--dp", world.dp)
    assert 1 == reported.count("11 information and 1 call")
    assert "1 calls" not in reported
    _, in_full = _json(capsys, "explain", "--sql", ARTICLES, "--dp", world.dp)
    shown = [each["code"] for each in in_full["statements"] if each["text"] in reported]
    assert "question" in shown
    assert [each for each in shown if each.startswith("method.")] == [PRICE]
    assert len(set(shown) - {VERDICT, PRICE}) <= MOST_SENTENCES
    assert "SELECT" not in reported


def test_an_exhausted_budget_says_what_is_missing(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """Level, unit, asked, left and when it is refreshed."""
    account = new_account("poor")
    _, reported = _json(capsys, "ask", *QUESTION, *_connection(world, account))
    (shortfall,) = reported["error"]["shortfalls"]
    assert shortfall["level"] == account.split("/")
    assert (shortfall["unit"], shortfall["requested"], shortfall["remaining"]) == ("information", 11, 5)
    assert shortfall["refreshes_at"]


def test_one_of_anything_is_no_plural(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """An account of one call, asked for people and refused."""
    account = new_account("poor")
    asked = ["ask", "--verbose", "--table", "feedback", "--by", "cohort"]
    assert main([*asked, *_connection(world, account)]) == 0
    again = [
        "ask",
        "--table",
        "feedback",
        "--by",
        "cohort",
        "--where",
        "score=1",
        *_connection(world, account),
    ]
    assert main(again) == 4
    printed = capsys.readouterr()
    shown = " ".join(printed.out.split())
    assert "0 of 1 call," in shown
    assert "A member changes at most 1 element, each by at most 1, over an unknown domain." in shown
    assert "calls: 1 asked for, 0 left" in printed.err


def test_a_service_that_is_not_there_is_exit_code_5(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody listens at the address of dp_service."""
    connection = [*_connection(world), "--dp", f"127.0.0.1:{free_port()}"]
    code, reported = _json(capsys, "ask", *QUESTION, *connection)
    assert (code, reported["error"]["code"]) == (5, "unavailable")


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "is empty"), (b"a,b\nsecret,x\n", "is no Parquet file"), (b"PAR1 secret", "ends early")],
)
def test_a_data_file_that_is_not_what_its_name_says_is_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, said: str
) -> None:
    """Exit code 2: asking again changes nothing."""
    (tmp_path / "rows.parquet").write_bytes(content)
    asked = ["ask", *QUESTION, "--account", "acme/ana", "--data", f"feedback={tmp_path / 'rows.parquet'}"]
    code, reported = _json(capsys, *asked)
    assert (code, reported["error"]["code"]) == (2, "usage")
    assert "--data: the data file rows.parquet" in reported["error"]["message"]
    assert said in reported["error"]["message"]
    assert "secret" not in str(reported)


def test_control_characters_of_data_do_not_reach_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A wrong argument is repeated in the message, without its escape sequence."""
    assert main(["ask", "--no-such\x1b[31m"]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_an_argument_that_is_no_text_is_a_usage_error_in_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    """Bytes of another encoding arrive as half a surrogate pair, which no output can hold."""
    code, reported = _json(capsys, "ask", "--no-such\udcff")
    assert (2, "usage") == (code, reported["error"]["code"])


@pytest.mark.usefixtures("starts_processes")
def test_help_loads_neither_grpc_nor_an_engine() -> None:
    """`gris --help` is quick because nothing heavy is imported for it."""
    script = (
        "import sys; from gris_cli.__main__ import main; code = main(['--help']); "
        "assert code == 0, code; assert not {'grpc', 'duckdb', 'pinotdb'} & sys.modules.keys()"
    )
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True)
    assert (0, "") == (done.returncode, done.stderr)


@pytest.mark.usefixtures("starts_processes", "examples_at_hand")
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["budget", "show", "--account", "a", "--budget", "127.0.0.1:1"], 5, "no answer at 127.0.0.1:1"),
        (["plan", "guarantee"], 0, ""),
        (["check", "examples/policy.yaml"], 0, ""),
        (
            ["check", "examples/policy.yaml", "--data", "cofacts_feedback=examples/policy.yaml"],
            2,
            "gris-dp[duckdb]",
        ),
        (["plan", "attacks"], 0, ""),
    ],
)
def test_commands_need_only_the_libraries_of_what_they_do(arguments: list[str], code: int, said: str) -> None:
    """The image of tools lacks two of them, and a policy needs no DuckDB; what needs one says what to install."""
    script = (
        "import sys; sys.modules |= dict.fromkeys(['matplotlib', 'duckdb']); "
        f"from gris_cli.__main__ import main; sys.exit(main({arguments!r}))"
    )
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True)
    assert code == done.returncode
    assert said in done.stderr


@pytest.mark.usefixtures("starts_processes")
def test_missing_libraries_are_named_with_the_command_that_brings_them() -> None:
    """With only the connector installed, the error says what else to install."""
    script = "import sys; sys.modules['typer'] = None; from gris_cli.__main__ import main; sys.exit(main(['demo']))"
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert "pip install 'gris-dp[all]'" in done.stderr


def test_json_of_hostile_elements_drives_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Escapes, marks that turn the direction, and ends of lines of every kind are data in one line of it."""
    hostile = [
        "\x1b[2J",
        "\x9b2J",
        "\u202egpj.exe",
        "\u2028",
        "\x85",
        "\U000e0041",
        "é \U0001f600 \u05d0",
        '"\\',
    ]
    print_json({"rows": hostile})
    printed = capsys.readouterr().out
    assert hostile == json.loads(printed)["rows"]
    assert printed.removesuffix("\n").isprintable()
    assert "é \U0001f600" in printed
