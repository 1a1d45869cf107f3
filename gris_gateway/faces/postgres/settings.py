"""What a session states by SET, and tells by SHOW.

Tools set much that means nothing here, and are not refused for it. What says how answers are read stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from gris_gateway.faces.postgres.errors import NO_SETTING, NOT_SUPPORTED, VALUE, PostgresError
from pinot_connector.checked_arguments import require_confidence, require_max_cost
from pinot_connector.errors import InvalidQuestion

OWN = "gris."
DATABASE = "gris"
# Sent to clients when a connection begins, and when it changes them.
_REPORTED = {
    "server_version": "",
    "server_encoding": "UTF8",
    "client_encoding": "UTF8",
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "integer_datetimes": "on",
    "standard_conforming_strings": "on",
    "default_transaction_read_only": "on",
    "in_hot_standby": "off",
    "is_superuser": "off",
    "application_name": "",
}
_MORE = {
    "transaction_isolation": "read committed",
    "default_transaction_isolation": "read committed",
    "transaction_read_only": "on",
    "search_path": '"$user", public',
    "max_identifier_length": "63",
    "client_min_messages": "notice",
    "statement_timeout": "0",
    **dict.fromkeys((f"{OWN}confidence", f"{OWN}max_cost"), ""),
    f"{OWN}intervals": "off",
}
_NAMES = {name.casefold(): name for name in _REPORTED}
# SET accepts these and changes nothing.
_FIXED = {*_NAMES, "transaction_isolation", "transaction_read_only", "max_identifier_length"} - {
    "application_name"
}
_SET = re.compile(
    r"SET\s++(?:SESSION\s++|(?P<local>LOCAL)\s++)?(?P<name>[\w.]++|\"[^\"]++\")\s*+(?:=|\bTO\b)\s*+(?P<value>.++)\Z",
    re.IGNORECASE | re.DOTALL,
)
_ZONE = re.compile(
    r"SET\s++(?:SESSION\s++|LOCAL\s++)?TIME\s++ZONE\s++(?P<value>.++)\Z", re.IGNORECASE | re.DOTALL
)
_SWITCH = {"on": True, "true": True, "1": True, "off": False, "false": False, "0": False}
_OWN: Mapping[str, tuple[Callable[[str], object], str]] = {
    f"{OWN}intervals": (_SWITCH.__getitem__, "on or off"),
    f"{OWN}confidence": (
        lambda value: require_confidence(float(value)),
        "a number from 0.5 to 1, such as 0.9",
    ),
    f"{OWN}max_cost": (lambda value: require_max_cost(int(value)), "a whole number of units, such as 20"),
}
_WITHOUT_NOTICES = ("warning", "error", "log", "fatal", "panic")
_MOST_SETTINGS = 200
_MOST_CHARACTERS = 1000


@dataclass
class Settings:
    """The settings of one session.

    Attributes:
        server_version: What this is for clients.
        stated: Those that the client has stated, by their names in small letters.
    """

    server_version: str
    stated: dict[str, str] = field(default_factory=dict)
    # What the connection began with, which RESET brings back, and what a transaction did, which ROLLBACK does.
    _first: dict[str, str] = field(default_factory=dict)
    _before: dict[str, str] = field(default_factory=dict)

    @property
    def intervals(self) -> bool:
        """Whether columns for the ends of intervals are wanted."""
        return _SWITCH[self.stated.get(f"{OWN}intervals", "off").casefold()]

    @property
    def confidence(self) -> float | None:
        """That of intervals; None: the gateway's."""
        stated = self.stated.get(f"{OWN}confidence")
        return None if stated is None else float(stated)

    @property
    def max_cost(self) -> int | None:
        """The most information units that a question may cost; None: whatever the budget holds."""
        stated = self.stated.get(f"{OWN}max_cost")
        return None if stated is None else int(stated)

    @property
    def with_notices(self) -> bool:
        """Whether notices are sent."""
        return self.stated.get("client_min_messages", "notice").casefold() not in _WITHOUT_NOTICES

    def reported(self) -> Mapping[str, str]:
        """Return what a client is sent when its connection begins."""
        return {name: self.shown(name) for name in _REPORTED}

    def shown(self, name: str) -> str:
        """Return what SHOW tells.

        Raises:
            PostgresError: There is no such setting.
        """
        key, known = name.casefold(), self._known()
        if key not in known:
            raise PostgresError(NO_SETTING, "there is no setting of this name")
        return known[key]

    def connected(self) -> None:
        """Take down that the connection begins with what is stated so far."""
        self._first = dict(self.stated)

    def begin(self) -> None:
        """Take down what is stated when a transaction begins."""
        self._before = dict(self.stated)

    def roll_back(self) -> None:
        """Bring back what was stated then."""
        self.stated = dict(self._before)

    def _known(self) -> dict[str, str]:
        known = {each: _REPORTED[written] for each, written in _NAMES.items()}
        return known | {**_MORE, **self.stated, "server_version": self.server_version}

    def set(self, sql: str) -> dict[str, str]:
        """Do what SET says, and return what its client is sent of it.

        Raises:
            PostgresError: It is none that can be done.
        """
        if _ZONE.match(sql) is not None or sql.upper().startswith(("SET TRANSACTION", "SET SESSION CHAR")):
            return {}
        if (found := _SET.match(sql)) is None:
            raise PostgresError(NOT_SUPPORTED, "expected SET name = value")
        name, value = found["name"].strip('"'), found["value"].strip().strip("'")
        if found["local"] and name.casefold().startswith(OWN):
            raise PostgresError(
                NOT_SUPPORTED, f"{name.casefold()}: expected SET, which holds until it is changed"
            )
        return self.state(name, value)

    def state(self, name: str, value: str) -> dict[str, str]:
        """Take a setting, and return what its client is sent of it.

        Raises:
            PostgresError: It is none that can be taken.
        """
        key = name.casefold()
        if len(self.stated) >= _MOST_SETTINGS or len(name) + len(value) > _MOST_CHARACTERS:
            raise PostgresError(VALUE, f"expected at most {_MOST_SETTINGS} settings, and short ones")
        if key == "client_encoding" and _letters(value) not in ("utf8", "unicode", "sqlascii"):
            raise PostgresError(VALUE, "client_encoding: expected UTF8")
        if key == "standard_conforming_strings" and value.casefold() not in ("on", "true", "1"):
            raise PostgresError(VALUE, "standard_conforming_strings: expected on")
        if key.startswith(OWN) and value.casefold() != "default":
            _require_own(key, value)
        if key in _FIXED:
            return {}
        if value.casefold() == "default":
            self.reset(key)
        else:
            self.stated[key] = value
        return {_NAMES[key]: self.shown(key)} if key in _NAMES else {}

    def reset(self, name: str) -> None:
        """Make a setting, or all, what they were when the connection began."""
        key = name.casefold()
        if key == "all":
            self.stated = dict(self._first)
        elif key in self._first:
            self.stated[key] = self._first[key]
        else:
            self.stated.pop(key, None)


def settings_in(options: str) -> Iterator[tuple[str, str]]:
    """Yield the settings in the options of a connection, as libpq writes them: -c name=value, or --name=value.

    Raises:
        PostgresError: There is something else.
    """
    # A backslash keeps a blank.
    words = [re.sub(r"\\(.)", r"\1", each) for each in re.findall(r"(?:\\.|\S)+", options)]
    while words:
        word = words.pop(0)
        if word == "-c" and words:
            word = f"-c{words.pop(0)}"
        name, sign, value = word[2:].partition("=")
        if word[:2] not in ("-c", "--") or not sign:
            raise PostgresError(VALUE, "options: expected -c name=value or --name=value")
        yield name.replace("-", "_"), value


def _require_own(key: str, value: str) -> None:
    """Refuse a setting of questions that cannot be taken."""
    if key not in _OWN:
        raise PostgresError(NO_SETTING, "expected gris.intervals, gris.confidence or gris.max_cost")
    check, expected = _OWN[key]
    try:
        check(value.casefold())
    except (KeyError, ValueError, InvalidQuestion):
        raise PostgresError(VALUE, f"{key}: expected {expected}") from None


def _letters(value: str) -> str:
    """Return a name of an encoding as PostgreSQL compares it."""
    return "".join(filter(str.isalnum, value.casefold()))
