"""What is wrong with a configuration, without anything of what stands in it: told to whoever asks the administrator.

The log quotes what it finds; an answer over the network names the place and what was expected there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import yaml
from pydantic import ValidationError


@dataclass(frozen=True, slots=True)
class Fault:
    """A place in the configuration (a field, or a line), and what was expected there."""

    field: str
    expected: str


class PlainError(yaml.YAMLError):
    """A key or value that YAML would take and this configuration does not; `fault` says the same without it."""

    def __init__(self, message: str, line: int, expected: str) -> None:
        super().__init__(f"{message}, line {line}")
        self.fault = Fault(f"line {line}", expected)


class RuleError(ValueError):
    """Fields that are fine each by itself and not together; `fault` names the one to change, and quotes nothing."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(f"{fault.field}: expected {fault.expected}")
        self.fault = fault


# What pydantic says of the others names types and bounds, and nothing that was found.
_UNKNOWN_KEY = "extra_forbidden"
_OWN_RULE = "value_error"
_EXPECTED: Mapping[str, str] = {
    "accounts.*.path": "a path of 1 to 4 segments without slashes, control or invisible characters",
    "accounts.*.zone": "the name of an IANA time zone",
    "accounts.*": "days for a sliding window, and for no other",
    "": "each path once",
}


def faults_of(error: OSError | UnicodeDecodeError | yaml.YAMLError | ValidationError) -> tuple[Fault, ...]:
    """Return what is wrong, from what the libraries say."""
    if isinstance(error, ValidationError):
        return tuple(_of_fields(error))
    if isinstance(error, PlainError):
        return (error.fault,)
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return (Fault(f"line {error.problem_mark.line + 1}", "YAML"),)
    if isinstance(error, OSError):
        return (Fault("the file", "one that can be read"),)
    return (Fault("the file", "YAML in UTF-8"),)


def _of_fields(error: ValidationError) -> Iterator[Fault]:
    for each in error.errors(include_input=False, include_url=False):
        place, kind = each["loc"], each["type"]
        own = each.get("ctx", {}).get("error")
        if kind == _UNKNOWN_KEY:
            yield Fault(".".join(map(str, place[:-1])), "no keys but the documented ones")
        elif isinstance(own, RuleError):
            yield own.fault
        elif kind == _OWN_RULE:
            pattern = ".".join("*" if isinstance(part, int) else part for part in place)
            yield Fault(".".join(map(str, place)), _EXPECTED[pattern])
        else:
            yield Fault(".".join(map(str, place)), each["msg"])
