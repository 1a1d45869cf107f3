"""Log events have stable names and fields, and the table in docs/monitoring.md lists all of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from gris_serving.logs import OWN_LOGGERS
from tests.support.packages import PACKAGES
from tests.support.paths import ROOT
from tests.support.some import some

LEVELS = {"debug", "info", "warning", "error", "critical", "exception", "log"}
LOGGERS = ("log", "_log", "logger", "logging")
LOG_CALL = re.compile(rf"\b(?:{'|'.join(LOGGERS)})\s*\.\s*(?:{'|'.join(LEVELS)})\b")
EVENT_NAME = re.compile(r"internal_error|[a-z_]+\.[a-z_]+")
ROW = re.compile(r"\| `(?P<event>[a-z_.]+)` \| [A-Z, ]+ \|(?P<fields>[^|]*)\|")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def log_calls() -> Iterator[tuple[str, Function, ast.Call]]:
    """Yield each log call of the packages: where it stands, the function around it and the call."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            # Of few files the syntax is looked through: most have no log.
            if LOG_CALL.search(source := path.read_text()) is None:
                continue
            for function in ast.walk(ast.parse(source)):
                if isinstance(function, Function):
                    for node in ast.walk(function):
                        if is_log_call(node):
                            assert isinstance(node, ast.Call)
                            yield f"{path.relative_to(ROOT)}:{node.lineno}", function, node


def is_log_call(node: ast.AST) -> bool:
    """Whether a node is a call of a method of the module's logger."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in LEVELS
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in LOGGERS
    )


def event_of(call: ast.Call) -> tuple[str, ast.expr | None]:
    """Return the event's name and the expression of its fields; fails if the call does not name its event."""
    (extra,) = [each.value for each in call.keywords if each.arg == "extra"]
    assert isinstance(extra, ast.Dict)
    values = {
        ast.literal_eval(key): value for key, value in zip(extra.keys, extra.values, strict=True) if key
    }
    assert set(values) <= {"event", "fields"}
    return str(ast.literal_eval(values["event"])), values.get("fields")


def field_names(function: Function, fields: ast.expr | None) -> set[str]:
    """Return the names of the fields: of a dictionary in the call, or of the variable `fields` of its function."""
    if fields is None:
        return set()
    if isinstance(fields, ast.Dict):
        return {str(ast.literal_eval(key)) for key in fields.keys if key is not None}
    names: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name) and target.id == "fields":
                    names |= field_names(function, node.value)
                if isinstance(target, ast.Subscript) and ast.unparse(target.value) == "fields":
                    names.add(str(ast.literal_eval(target.slice)))
    return names


def events_in_code() -> dict[str, set[str]]:
    """Return the fields of each event that some code logs."""
    found: dict[str, set[str]] = {}
    for _, function, call in log_calls():
        event, fields = event_of(call)
        found.setdefault(event, set()).update(field_names(function, fields))
    return found


def events_in_table() -> dict[str, set[str]]:
    """Return the fields of each event in the table of docs/monitoring.md."""
    text = (ROOT / "docs/monitoring.md").read_text()
    rows = ROW.finditer(text[text.index("## Logs") :])
    return {row["event"]: set(re.findall(r"`(\w+)`", row["fields"])) for row in rows}


def test_the_level_of_a_process_is_that_of_every_package_that_logs() -> None:
    """Else it would hold for the others alone."""
    assert {place.partition("/")[0] for place, _, _ in log_calls()} <= set(OWN_LOGGERS)


def test_every_event_is_in_the_table_with_its_fields() -> None:
    """And the table has no event that no code logs."""
    assert events_in_code() == events_in_table()


def test_a_message_is_a_constant_sentence() -> None:
    """What varies is a field: a message has no arguments, and the event's name is noun.verb."""
    for location, _, call in some(log_calls()):
        event, _ = event_of(call)
        assert EVENT_NAME.fullmatch(event), location
        message = call.args[1 if isinstance(call.func, ast.Attribute) and call.func.attr == "log" else 0]
        assert isinstance(message, ast.Constant | ast.Name), location
        assert len(call.args) <= 2, location
