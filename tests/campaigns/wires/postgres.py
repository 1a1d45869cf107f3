"""What clients of PostgreSQL may send, changed at random: beginnings, passwords, and messages of every kind."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from random import Random

from pygwire import messages

from tests.campaigns.fuzz.mutating import CANARY_TEXT as MARK
from tests.campaigns.fuzz.mutating import mutated
from tests.campaigns.wires.conversations import Conversation, End
from tests.campaigns.wires.stage import EXACT, ONCE, QUESTION, REFUSED
from tests.campaigns.wires.texts import bent, in_parts, no_question

_SYNC = messages.Sync().to_wire()
_LENGTHS = (0, 1, 3, 4, 5, 2**16, 2 * 2**20, 2 * 2**20 + 1, 2**31 - 1, 2**31, 2**32 - 1)
_NAMES = ("", "", "a", "b", "\u00e9", "x" * 300, "a; DROP")
_KINDS = b"QPBDESHCFdcfpXZRKTGAn123st\x00\xff "
_OIDS = (0, 16, 20, 21, 23, 25, 114, 700, 701, 1042, 1082, 1114, 1184, 1700, 2950, 2**31, 2**32 - 1)
_VALUES = (
    *(
        None,
        b"",
        b"\0",
        b"1",
        b"-1",
        b"t",
        b"\xff\xfe",
        b"2019-01-03",
        b"infinity",
        b"NaN",
        b"1e999999",
        b"9" * 5000,
    ),
    *(
        b"\x00\x00\x00\x01",
        b"\x7f" + b"\xff" * 7,
        b"\x80" + b"\x00" * 7,
        b"\x00\x01\x7f\xff\x00\x00\x00\x00\x00\x07",
    ),
    *(MARK.encode(), b"x" * 10_000, b"' OR 1 = 1 --"),
)


def conversation(random: Random, tokens: Mapping[str, str]) -> Conversation:
    """Return all that one connection sends."""
    if random.random() < 0.05:
        return _mutated_questions(random, tokens[EXACT])
    if random.random() < 0.01:
        return _holding(random, tokens[REFUSED])
    if random.random() < 0.2:
        sent = [_beginning(random, tokens) for _ in range(random.randint(1, 4))]
    else:
        caller = ONCE if random.random() < 0.1 else REFUSED
        sent = [_start(random), messages.PasswordMessage(tokens[caller]).to_wire()]
        # Half of them whole, so that what stands behind is read too.
        bending = random.choice((0.0, 0.3))
        made = range(random.randint(1, 24))
        sent += [_message(random, is_once=caller == ONCE, bending=bending) for _ in made]
        if random.random() < 0.1:
            random.shuffle(sent)
    parts = [part for each in sent for part in in_parts(each, random)]
    end = random.choices((End.WAIT, End.LEAVE, End.STAY), (6, 3, 1))[0]
    closing = messages.Sync().to_wire() + messages.Terminate().to_wire() if end is End.WAIT else b""
    return Conversation([*parts, closing], len(sent), end)


def going_back(size: int, jumps: int) -> bytes:
    """Return a Bind whose lengths lead back to where they stand, so that its content is read again and again."""
    begin = b"\0\0" + struct.pack("!HH", 0, jumps)
    place = len(begin)
    # Read at `place`: a length below nothing, to 8 before the end; read there: one that leads back to `place`.
    payload = bytearray(begin + bytes(size))
    struct.pack_into("!i", payload, place, -8 - (place + 4))
    struct.pack_into("!i", payload, len(payload) - 8, place + 4)
    return b"B" + struct.pack("!I", len(payload) + 4) + bytes(payload)


def _start(random: Random, **more: str) -> bytes:
    params = {"user": "-", "database": random.choice(("gris", "postgres", "")), **more}
    if random.random() < 0.2:
        params[random.choice(("options", "application_name", "client_encoding", "replication", "gris.x"))] = (
            random.choice(("-c gris.max_cost=5", f"-c a={MARK} -c", MARK, "UTF8", "", "x" * 900))
        )
    return messages.StartupMessage(params).to_wire()


def _beginning(random: Random, tokens: Mapping[str, str]) -> bytes:
    """Return what comes before a caller is known, or instead."""
    made: tuple[Callable[[], bytes], ...] = (
        messages.SSLRequest().to_wire,
        messages.GSSEncRequest().to_wire,
        lambda: messages.CancelRequest(
            random.randrange(2**31), random.randbytes(random.choice((0, 4, 250)))
        ).to_wire(),
        lambda: _start(random, user=random.choice((MARK, "wires/good", "x" * 5000, "\u00e9"))),
        lambda: _start(random),
        lambda: bent(_start(random), random),
        lambda: struct.pack(
            "!II", random.choice(_LENGTHS), random.choice((196608, 196610, 0, 80877103, 2**32 - 1))
        ),
        lambda: messages.PasswordMessage(random.choice((MARK, "", "a.b.c", tokens[REFUSED][:-3]))).to_wire(),
        lambda: bent(messages.PasswordMessage(tokens[REFUSED]).to_wire(), random),
        lambda: random.randbytes(random.randint(0, 60)),
        lambda: _message(random, is_once=False, bending=0.3),
        f"GET /{MARK} HTTP/1.1\r\n\r\n".encode,
    )
    return random.choice(made)()


def _message(random: Random, *, is_once: bool, bending: float) -> bytes:
    """Return a message of a caller who is known: some are bent, or have another kind or length."""
    made = (*_MADE, *_BROKEN) if bending else _MADE
    content = random.choice(made)(
        random, QUESTION if is_once and random.random() < 0.5 else no_question(random)
    )
    # Bent, the question might be another one.
    if random.random() >= bending or QUESTION.encode() in content:
        return content
    match random.randrange(4):
        case 0:
            return content[:1] + struct.pack("!I", random.choice(_LENGTHS)) + content[5:]
        case 1:
            return bytes([random.choice(_KINDS)]) + content[1:]
        case _:
            return bent(content, random)


def _name(random: Random) -> str:
    return random.choice(_NAMES)


def _several(random: Random, choices: tuple[int, ...]) -> list[int]:
    return [random.choice(choices) for _ in range(random.choice((0, 0, 1, 2, 3, 2000)))]


def _parse(random: Random, sql: str) -> bytes:
    name = _name(random) if random.random() < 0.8 else str(random.random())
    return messages.Parse(name, sql.replace("\0", ""), _several(random, _OIDS)).to_wire()


def _bind(random: Random, _: str) -> bytes:
    values = [random.choice(_VALUES) for _ in range(random.choice((0, 1, 1, 2, 2, 3, 300)))]
    forms = [_several(random, (0, 0, 1, 1, 2, 65_535)) for _ in range(2)]
    return messages.Bind(_name(random), _name(random), forms[0], values, forms[1]).to_wire()


_MADE: tuple[Callable[[Random, str], bytes], ...] = (
    lambda _, sql: _SYNC + messages.Query(sql).to_wire(),
    lambda _, sql: _SYNC + messages.Query(sql).to_wire(),
    _parse,
    _parse,
    _bind,
    _bind,
    lambda random, _: messages.Describe(random.choice("SPSPSPx\0\xe9"[:7]), _name(random)).to_wire(),
    lambda random, _: messages.Execute(_name(random), random.choice((0, 1, 2**31, 2**32 - 1))).to_wire(),
    lambda random, _: messages.Close(random.choice("SPSPx"), _name(random)).to_wire(),
    lambda _, __: messages.Sync().to_wire(),
    lambda _, __: messages.Sync().to_wire(),
    lambda _, __: messages.Flush().to_wire(),
)
# What ends a connection, or does so where it stands.
_BROKEN: tuple[Callable[[Random, str], bytes], ...] = (
    lambda _, sql: messages.Query(sql).to_wire(),
    lambda random, _: messages.FunctionCall(random.randrange(2**32), [], [MARK.encode()], 0).to_wire(),
    lambda random, sql: (
        bytes([random.choice(_KINDS)]) + struct.pack("!I", 4 + len(sql.encode())) + sql.encode()
    ),
    lambda random, _: random.randbytes(random.randint(0, 40)),
    lambda random, _: going_back(300_000, random.choice((2, 2000))),
)


def _holding(random: Random, token: str) -> Conversation:
    """Return what makes a connection hold as much as it may: statements, parameters, and half a message."""
    sign = random.choice(("x,", "$1 ", "'' ", "x"))
    texts = [sign * (size // len(sign)) for size in (120_000, 60_000, 40_000, 20_000, 9_000)]
    sent = [_start(random), messages.PasswordMessage(token).to_wire(), messages.Query("BEGIN").to_wire()]
    sent += [messages.Parse(f"s{place}", f"SELECT {text}").to_wire() for place, text in enumerate(texts)]
    sent += [_SYNC, messages.Parse("p", "SELECT nope FROM engagement WHERE article_id = $1").to_wire()]
    sent += [messages.Bind(f"p{place}", "p", [], [b"x" * 1_900_000]).to_wire() for place in range(9)]
    sent += [_SYNC, b"Q" + struct.pack("!I", 2 * 2**20) + b"x" * 1_900_000]
    return Conversation(sent, len(sent), End.STAY)


def _mutated_questions(random: Random, token: str) -> Conversation:
    """Return SQL that may be a question, simple and extended; it waits for what each has cost."""
    sent = [_start(random), messages.PasswordMessage(token).to_wire()]
    for _ in range(random.randint(1, 6)):
        sql = mutated(random).replace("\0", "").encode(errors="ignore").decode()
        if random.random() < 0.5:
            sent.append(messages.Query(sql).to_wire())
        else:
            parts = (messages.Parse("", sql), messages.Bind(), messages.Execute(), messages.Sync())
            sent.append(b"".join(each.to_wire() for each in parts))
    sent.append(messages.Terminate().to_wire())
    return Conversation(sent, len(sent), End.ANSWERED, is_exact=True)
