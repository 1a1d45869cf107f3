"""What came back, read as far as it has to be judged: refusals by their codes, and what was charged."""

from __future__ import annotations

import json
import re
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.campaigns.fuzz.mutating import CANARY_TEXT as MARK
from tests.campaigns.wires.stage import ELEMENT, Stage

_STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) [^\r\n]*\r\n")
_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)\r\n", re.IGNORECASE)
_CHARGED = re.compile(rb"Mcharged: (\d+) information")
# Of broker and PostgreSQL: the gateway or a service has failed.
_FAILED = 450
_FAILED_STATES = ("XX", "58")


@dataclass
class Judged:
    """What was seen in answers.

    Attributes:
        ends: How often each code ended a question, a request or a connection.
        charged: The information units that answers said they charged.
        faults: What should not be.
    """

    ends: Counter[str] = field(default_factory=Counter)
    charged: int = 0
    faults: list[str] = field(default_factory=list)


def judge_postgres(content: bytes, *, is_exact: bool, into: Judged) -> None:
    """Judge the messages of a connection."""
    for kind, payload in _messages(content):
        if kind == b"E":
            fields = dict(re.findall(rb"([A-Z])([^\0]*)\0", payload))
            state = fields.get(b"C", b"?").decode()
            into.ends[state] += 1
            if state.startswith(_FAILED_STATES):
                into.faults.append(f"{state}: {fields.get(b'M', b'').decode(errors='replace')[:200]}")
        elif kind == b"C":
            into.ends["answered"] += 1
        elif kind == b"N" and is_exact:
            into.charged += sum(int(each) for each in _CHARGED.findall(payload))
        elif kind not in b"RSKZTDN123tnsIGH":
            into.faults.append(f"a message of no kind: {kind!r}")


def _messages(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    # What a request for encryption is answered has no length.
    place = (
        len(content) - len(content.lstrip(b"NS"))
        if content[:1] in (b"N", b"S") and content[1:2] != b"\0"
        else 0
    )
    while place + 5 <= len(content):
        (length,) = struct.unpack_from("!I", content, place + 1)
        yield content[place : place + 1], content[place + 5 : place + 1 + length]
        place += 1 + length


def judge_http(content: bytes, *, is_exact: bool, into: Judged) -> None:
    """Judge the responses of a connection."""
    place = 0
    while (found := _STATUS.match(content, place)) is not None:
        status, head = int(found[1]), content.find(b"\r\n\r\n", place)
        if head < 0:
            return
        length = _LENGTH.search(content, place, head + 2)
        # A response to HEAD states a length, and has no body.
        has_body = length is not None and not content.startswith(b"HTTP/1.1 ", head + 4)
        end = head + 4 + (int(length[1]) if length and has_body else 0)
        body = content[head + 4 : end]
        place = end
        into.ends[str(status)] += 1
        if status >= 500:
            into.faults.append(f"{status}: {body[:200].decode(errors='replace')}")
        try:
            answer = json.loads(body) if body.startswith(b'{"resultTable') else {}
        except ValueError:
            # The end of it was not read, or a response to HEAD has none.
            continue
        for exception in answer.get("exceptions", ()):
            into.ends[f"code {exception['errorCode']}"] += 1
            if exception["errorCode"] == _FAILED:
                into.faults.append(f"450: {exception['message'][:200]}")
        if is_exact and answer.get("gris"):
            into.charged += answer["gris"]["charged"]["information"]


def faults_of_log(stage: Stage) -> list[str]:
    """Return what should not be in the log of the gateway."""
    log = stage.log.read_text(errors="replace")
    lines = [line.partition(" ")[2] for line in log.splitlines()]
    wrong = Counter(line for line in lines if line.startswith(("ERROR", "CRITICAL")) or "Traceback" in line)
    found = [f"the log, {times} times: {line[:300]}" for line, times in wrong.most_common()]
    secrets = {"a literal": MARK, "an element": ELEMENT, "a token": next(iter(stage.tokens.values()))[-20:]}
    found += [f"the log has {name}" for name, text in secrets.items() if text in log]
    return found[:20]
