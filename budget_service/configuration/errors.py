"""The faults of a configuration, without anything that the file contains.

The log may quote the file. Answers over the network only name the field and what was expected there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from gris_serving.schema_words import expected
from gris_serving.yaml_texts import TextError


@dataclass(frozen=True, slots=True)
class Fault:
    """A field or a line of the configuration, and what was expected there."""

    field: str
    expected: str


class RuleError(ValueError):
    """Fields that are valid one by one, but not together. `fault` names the one to change, without a quote."""

    def __init__(self, fault: Fault, problem: str = "") -> None:
        super().__init__(f"{fault.field}: {problem or f'expected {fault.expected}'}")
        self.fault = fault


# What is said of other types names types and bounds, and quotes nothing.
_WRONG_KEYS = ("extra_forbidden", "invalid_key")
_OWN_RULE = "value_error"
_EXPECTED: Mapping[str, str] = {
    "accounts.*.path": "a path of 1 to 4 segments without slashes, control or invisible characters, each a * alone or "
    "without one",
    "accounts.*.zone": "the name of an IANA time zone",
    "accounts.*": "days for a sliding window, and for no other",
    "leases": "a share_percent that is not above outstanding_percent",
}


def faults_of(error: OSError | UnicodeDecodeError | TextError | ValidationError) -> tuple[Fault, ...]:
    """Return the faults behind an error of the text, of Pydantic or of the file system."""
    if isinstance(error, ValidationError):
        return tuple(_of_fields(error))
    if isinstance(error, TextError) and error.line is not None:
        return (Fault(f"line {error.line}", "YAML"),)
    if isinstance(error, OSError):
        return (Fault("the file", "one that can be read"),)
    return (Fault("the file", "YAML in UTF-8"),)


def _of_fields(error: ValidationError) -> Iterator[Fault]:
    for each in error.errors(include_input=False, include_url=False):
        location, kind = each["loc"], each["type"]
        field = ".".join(map(str, location)) or "the file"
        own = each.get("ctx", {}).get("error")
        if kind in _WRONG_KEYS:
            above = ".".join(map(str, location[:-1])) or "the file"
            yield Fault(above, "no keys but the documented ones")
        elif isinstance(own, RuleError):
            yield own.fault
        elif kind == _OWN_RULE:
            pattern = ".".join("*" if isinstance(part, int) else part for part in location)
            yield Fault(field, _EXPECTED.get(pattern, "another value"))
        else:
            what = expected(kind, each["msg"]).removeprefix("expected ")
            yield Fault(field, what)
