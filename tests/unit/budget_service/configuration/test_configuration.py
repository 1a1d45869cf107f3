"""`budget.yaml`: what it may say, and what it means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from budget_service.configuration.budget_file import (
    AccountEntry,
    AccountUnknownError,
    Configuration,
    ConfigurationError,
    Expired,
    InvisibleNameError,
    load_configuration,
)
from budget_service.ledger.values import Account, Cost, Mode
from budget_service.ledger.windows import Period, WindowRule
from tests.support.paths import EXAMPLES

EXAMPLE = EXAMPLES / "budget.yaml"


def load(tmp_path: Path, text: str) -> Configuration:
    """Load a configuration from its text."""
    path = tmp_path / "budget.yaml"
    path.write_text(text)
    return load_configuration(path)


def account(*path: str) -> Account:
    """Return an account."""
    return Account(path)


def entry(path: str, more: str = "") -> str:
    """Return the text of one entry."""
    return f"  - path: {path}\n    limit: {{information: 10, calls: 5}}\n{more}"


def test_the_example_limits_company_and_analyst() -> None:
    """The first entry that matches counts; the month and UTC are the defaults."""
    configuration = load_configuration(EXAMPLE)
    company, analyst = configuration.limits_of(account("demo", "anyone"), {})
    assert (account("demo"), Cost(9000, 900)) == (company.level, company.limit.maximum)
    assert (account("demo", "anyone"), Cost(3000, 300)) == (analyst.level, analyst.limit.maximum)
    assert (Mode.ENFORCE, WindowRule(Period.MONTH, "UTC")) == (analyst.limit.mode, analyst.limit.window)
    assert Cost(45, 3) == configuration.limits_of(account("demo", "small"), {})[-1].limit.maximum
    assert configuration.expired is Expired.RETURN


def test_levels_without_a_limit_lie_between_those_that_have_one(tmp_path: Path) -> None:
    """However many accounts share them, each has the limits of its own path."""
    paths = ("['*']", "[acme, labs, '*']", "['*', '*', '*', '*']")
    tracked = [entry(path, "    mode: track\n") for path in paths]
    found = load(tmp_path, "accounts:\n" + "".join(tracked))
    wanted = {
        ("acme", "labs", "ann", "x"): [1, 3, 4],
        ("acme", "labs", "bob", "x"): [1, 3, 4],
        ("acme", "shop", "ann", "x"): [1, 4],
        ("acme", "labs", "ann"): [1, 3],
        ("other", "labs", "ann", "x"): [1, 4],
        ("other",): [1],
    }
    for _ in range(2):
        for path, depths in wanted.items():
            levels = [each.level for each in found.limits_of(Account(path), {})]
            assert [Account(path[:depth]) for depth in depths] == levels


@pytest.mark.parametrize("path", [("other",), ("demo", "a", "b"), ("other", "a")])
def test_an_account_that_no_entry_matches_in_full_does_not_exist(path: tuple[str, ...]) -> None:
    """A prefix is not enough."""
    with pytest.raises(AccountUnknownError):
        load_configuration(EXAMPLE).limits_of(Account(path), {})


def test_a_window_may_slide(tmp_path: Path) -> None:
    """Over the last days of its zone, with today."""
    more = "    window: sliding\n    days: 400\n    zone: Asia/Tokyo\n"
    found = load(tmp_path, "accounts:\n" + entry("[a]", more)).limits_of(account("a"), {})
    assert WindowRule(Period.SLIDING, "Asia/Tokyo", 400) == found[0].limit.window


def test_wildcards_make_accounts(tmp_path: Path) -> None:
    """Each path that an entry matches in full; the limits of all its levels count."""
    found = load(tmp_path, "accounts:\n" + entry("[acme]") + entry("[acme, ann]") + entry("[acme, '*']"))
    for name in ("ann", "bob"):
        assert [each.level.depth for each in found.limits_of(account("acme", name), {})] == [1, 2]
    for path in (("other",), ("acme", "bob", "dev")):
        with pytest.raises(AccountUnknownError):
            found.limits_of(Account(path), {})


@pytest.mark.parametrize("hidden", ["\ufe0f", "\u3164", "\u034f", "\uffa0", "\u115f", "\U000e0100"])
def test_no_wildcard_makes_an_account_whose_name_looks_like_another(tmp_path: Path, hidden: str) -> None:
    """An account that is written out, or has a stored limit, goes on; so does what is below it."""
    name = f"ann{hidden}"
    bound = entry("[acme]") + entry("[acme, '*']")
    wildcards = load(tmp_path, "accounts:\n" + bound + entry("[acme, '*', dev]"))
    assert wildcards.limits_of(account("acme", "ann"), {})
    for path, index in ((("acme", name), 1), (("acme", name, "dev"), 1)):
        with pytest.raises(InvisibleNameError) as error:
            wildcards.limits_of(Account(path), {})
        assert error.value.index == index
    limit = wildcards.limit_of(account("acme", "ann"))
    assert limit is not None
    stored = account("acme", name)
    assert [each.level.depth for each in wildcards.limits_of(stored, {stored: limit})] == [1, 2]
    written = entry(f'[acme, "{name}"]') + entry(f'[acme, "{name}", "*"]')
    named = load(tmp_path, "accounts:\n" + bound + written)
    assert [each.level.depth for each in named.limits_of(stored, {})] == [1, 2]
    assert named.limits_of(account("acme", name, "dev"), {})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("accounts: []", "accounts"),
        ("{}", "accounts"),
        ("- a", "expected keys and their values"),
        (
            "accounts: []\nx: 1",
            "accounts: expected at least 1 item (line 1); x: there is no such key (line 2)",
        ),
        ("accounts:\n  - limit: {information: 1, calls: 1}", "accounts.0.path: expected this key"),
        ("accounts:\n" + entry("[a]") + "limits: {}", "limits"),
        ("accounts:\n" + entry("[a]", "    modus: track\n"), "accounts.0.modus"),
        ("accounts:\n" + entry("[a]", "    mode: tracking\n"), "accounts.0.mode"),
        ("accounts:\n" + entry("[a]", "    window: fortnight\n"), "accounts.0.window"),
        ("accounts:\n" + entry("[a]", "    window: sliding\n"), "accounts.0: a sliding window"),
        ("accounts:\n" + entry("[a]", "    window: week\n    days: 7\n"), "a sliding window, and no other"),
        ("accounts:\n" + entry("[a]", "    window: sliding\n    days: 1\n"), "accounts.0.days"),
        ("accounts:\n" + entry("[a]", "    window: sliding\n    days: 401\n"), "accounts.0.days"),
        ("accounts:\n" + entry("[a]", "    zone: Berlin\n"), "accounts.0.zone"),
        ("accounts:\n" + entry("[a]", "    zone: ../etc/passwd\n"), "accounts.0.zone"),
        ("accounts:\n" + entry("[a]", "    zone: localtime\n"), "accounts.0.zone"),
        ("accounts:\n" + entry("[a, 7]"), "accounts.0.path.1"),
        ("accounts:\n" + entry("[a/b]"), "accounts.0.path"),
        ("accounts:\n" + entry("[]"), "accounts.0.path"),
        ("accounts:\n" + entry("[a, b, c, d, e]"), "accounts.0.path: path must have 1 to 4 segments"),
        ("accounts:\n" + entry("[a, 'team-*']"), 'accounts.0.path: path[1] must have "*" alone'),
        ("accounts:\n" + entry("[a, '**']"), 'accounts.0.path: path[1] must have "*" alone'),
        (
            "accounts:\n" + entry("[a]") + entry("[b]") + entry("[a]"),
            "accounts.2.path: ['a'] stands there twice",
        ),
        ("accounts:\n" + entry("[a, *]"), "line 2: a text that begins with *, & or % needs quotes"),
        (
            "accounts:\n  - path: [a]\n    limit: !!int {information: 1}",
            "line 3: explicit tags are not allowed",
        ),
        ("1: 2\naccounts:\n" + entry("[a]"), "line 1: expected a text as key"),
        ("accounts:\n" + entry("[a]") + "charge_tickets:", "charge_tickets: expected keys and their values"),
        ("accounts:\n" + entry("[a]") + "leases:\n  # seconds: 60", "leases: expected keys and their values"),
        (
            "accounts:\n" + entry("[a]") + "leases: {share_percent: 50, outstanding_percent: 9}",
            "leases: share_percent must not be more than outstanding_percent",
        ),
        (
            "accounts:\n" + entry("[a]", "    mode: track\n    mode: enforce\n"),
            "line 5: the key 'mode' is repeated",
        ),
        ("accounts: " + "[" * 10_000, "expected less nesting"),
        ("accounts:\n  - path: [a]\n    limit: {information: -1, calls: 1}", "accounts.0.limit.information"),
        ("accounts:\n  - path: [a]\n    limit: {information: 1.5, calls: 1}", "accounts.0.limit.information"),
        ("accounts:\n  - path: [a]\n    limit: {information: 1}", "accounts.0.limit.calls"),
        ("accounts:\n  - path: [a]\n    limit: {information: 1, calls: 9223372036854775808}", "limit.calls"),
        *(
            (
                f"accounts:\n  - path: [a]\n    limit: {{information: {number}, calls: 1}}",
                "accounts.0.limit.information: expected a whole number",
            )
            for number in ("0300", "1:30", "1_000", "0x1F", "0b11", "+5", "-07")
        ),
        (
            "accounts:\n  - path: [a]\n    limit: {information: !!int 0300, calls: 1}",
            "line 3: explicit tags are not allowed",
        ),
        ("accounts:\n" + entry("[a]") + "expired_reservations: keep", "expired_reservations"),
        ("accounts:\n" + entry("[a]") + "charge_tickets: {}", "charge_tickets.key_file"),
        ("accounts: [", "budget.yaml"),
        (
            "accounts:\n  - path: [a]\n    limit: {information: 1" + "0" * 5000 + ", calls: 1}",
            "line 3: expected an integer of 64 bits",
        ),
        ("accounts:\n" + entry("[a]", "    zone: 2024-02-30\n"), "accounts.0.zone"),
    ],
)
def test_a_wrong_configuration_is_refused_in_one_line_that_names_the_field(
    tmp_path: Path, text: str, named: str
) -> None:
    """Strict: no unknown keys, no repeated keys, no conversions."""
    with pytest.raises(ConfigurationError) as error:
        load(tmp_path, text)
    message = str(error.value)
    assert named in message
    assert "\n" not in message


TRACKED = "    mode: track\n"


@pytest.mark.parametrize(
    ("entries", "index"),
    [
        # Fresh names in any segment are fresh budgets, and nothing above them ends that.
        ((entry("[acme, '*', '*']"),), 0),
        ((entry("[acme, '*']"), entry("[acme, '*', '*']")), 0),
        ((entry("[acme, '*']"),), 0),
        ((entry("['*']"),), 0),
        ((entry("['*']"), entry("['*', '*']")), 0),
        ((entry("[acme, labs]"), entry("[acme, '*', x]")), 1),
        # A level beside it, or one that refuses nothing, ends nothing.
        ((entry("[other]"), entry("[acme, '*']")), 1),
        ((entry("[acme]", TRACKED), entry("[acme, '*']")), 1),
        ((entry("[acme]", TRACKED), entry("['*']"), entry("[acme, x, '*']")), 1),
        # What an account only records is still refused by the level of another fresh name.
        ((entry("[acme, '*']"), entry("[acme, '*', '*']", TRACKED)), 0),
        ((entry("[acme, '*', '*']", TRACKED), entry("['*', '*']")), 0),
    ],
)
def test_accounts_without_end_need_a_limit_above_them_all(
    tmp_path: Path, entries: tuple[str, ...], index: int
) -> None:
    """Where any name makes an account, callers who choose names would never run out of budget."""
    text = "accounts:\n" + "".join(entries)
    with pytest.raises(ConfigurationError, match=rf"accounts\.{index}\.path.*enforce"):
        load(tmp_path, text)


@pytest.mark.parametrize(
    "entries",
    [
        (entry("[acme]"), entry("[acme, '*']"), entry("[acme, '*', '*']")),
        (entry("[acme]"), entry("[acme, '*', '*']")),
        (entry("[acme, labs]"), entry("[acme, labs, '*']")),
        (entry("[acme, ann]"), entry("[acme, bob]")),
        # Accounts that only record promise nothing.
        (entry("['*']", TRACKED), entry("['*', '*']", TRACKED)),
        (entry("[acme, '*']", TRACKED), entry("[other]")),
        (entry("[acme, '*', '*']", TRACKED), entry("[acme, ann]")),
    ],
)
def test_accounts_that_a_limit_above_bounds_may_be_made(tmp_path: Path, entries: tuple[str, ...]) -> None:
    """However many there are, together they spend no more than the limit above them."""
    assert len(load(tmp_path, "accounts:\n" + "".join(entries)).accounts) == len(entries)


def test_of_one_mistake_in_very_many_entries_the_first_twenty_are_named(tmp_path: Path) -> None:
    """A line of the log has to hold them."""
    with pytest.raises(ConfigurationError, match=r"accounts\.19\.mode: [^;]*; and 30 more$"):
        load(
            tmp_path, "accounts:\n" + "".join(entry(f"[a{number}]", "    mode: on\n") for number in range(50))
        )


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """So that a typing error is found at once."""
    path = tmp_path / "no-such-file"
    with pytest.raises(ConfigurationError) as error:
        load_configuration(path)
    assert f"{path}: No such file or directory" == str(error.value)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"\xff\xfe", "expected UTF-8"),
        (
            b"accounts: [secret\nlimit: }",
            "line 2: a list in brackets needs a comma between its values, and a ] at its end",
        ),
    ],
)
def test_what_is_no_document_is_refused_in_plain_words(tmp_path: Path, content: bytes, expected: str) -> None:
    """Neither Python's words nor a piece of the file."""
    path = tmp_path / "budget.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError) as error:
        load_configuration(path)
    assert f"{path}: {expected}" == str(error.value)


def test_what_is_missing_is_said_in_plain_words(tmp_path: Path) -> None:
    """Not in those of the library that checks it."""
    with pytest.raises(ConfigurationError) as error:
        load(tmp_path, "accounts:\n  - limit: {information: 1, calls: x}")
    for said in ("accounts.0.path: expected this key", "accounts.0.limit.calls: expected a whole number"):
        assert said in str(error.value)


class CountedName(str):
    """A segment of a path that counts how often it is compared."""

    __slots__ = ()
    comparisons = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        """Compare as texts do."""
        CountedName.comparisons += 1
        return str.__eq__(self, other)


def counted(path: Sequence[str]) -> list[str]:
    """Return a path whose comparisons are counted."""
    return [CountedName(segment) for segment in path]


def many_entries(roots: int, mode: str) -> list[AccountEntry]:
    """Return three levels of each root, and of one of them as many companies."""
    paths = [[f"c{number}", *rest] for number in range(roots) for rest in ([], ["*"], ["*", "*"])]
    paths += [["acme"], *([*path, "*"] for path in (["acme", f"d{number}"] for number in range(roots)))]
    template = AccountEntry.model_validate(
        {"path": ["a"], "limit": {"information": 9, "calls": 9}, "mode": mode}
    )
    return [template.model_copy(update={"path": counted(path)}) for path in paths]


def comparisons_of(work: Callable[[], object]) -> int:
    """Return how often segments are compared."""
    before = CountedName.comparisons
    work()
    return CountedName.comparisons - before


@pytest.mark.parametrize("mode", ["enforce", "track"])
def test_ten_times_as_many_entries_take_ten_times_the_comparisons_to_check(mode: str) -> None:
    """Each path once, and each pattern a level that bounds it."""

    def checked(roots: int) -> int:
        document = {"accounts": many_entries(roots, mode)}
        return comparisons_of(lambda: Configuration.model_validate(document))

    few, many = checked(20), checked(200)
    assert 0 < many < 15 * few


def test_a_request_takes_as_many_comparisons_with_ten_times_as_many_entries() -> None:
    """Whatever is looked up: the limits of an account, a level to be closed, a limit that is changed."""

    def asked(roots: int) -> list[int]:
        document = {"accounts": many_entries(roots, "enforce")}
        configuration = Configuration.model_validate(document)
        last = Account(tuple(counted([f"c{roots - 1}", "*", "*"])))
        named, unknown = Account((last.root, "ann", "x")), account("nobody", "ann")
        limit = configuration.limit_of(last.level(1))
        assert limit is not None
        tracked = replace(limit, mode=Mode.TRACK)
        first = configuration.rules_of(last.root, {})
        assert len(first) == 1
        return [
            comparisons_of(lambda: configuration.limit_of(named)),
            comparisons_of(lambda: configuration.limit_of(unknown)),
            comparisons_of(lambda: configuration.limits_of(named, {named: limit})),
            comparisons_of(lambda: configuration.is_about(unknown)),
            comparisons_of(lambda: configuration.is_written_out(named)),
            comparisons_of(lambda: configuration.rules_of(last.root, {named: limit})),
            comparisons_of(lambda: configuration.pattern_opened_by({named.level(1): tracked}, {})),
        ]

    assert asked(20) == asked(200)
