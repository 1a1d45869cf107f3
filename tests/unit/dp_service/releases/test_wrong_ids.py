"""What goes wrong when an id or a seed forgets something: each wrong form is put in place and breaks its claim.

Together the claims say that nothing is free but the very same release, and that ids tell nothing without the key.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from gris_api.dp.v1 import dp_pb2, question_pb2

from dp_service.noise.encoding import length_prefixed
from dp_service.parameters.release import ReleaseParameters
from dp_service.releases import keys, release_ids, releasing, translation
from dp_service.releases.keys import KeySet, KeyUse, NoiseKey
from dp_service.server import responses, service, stream_assembler
from dp_service.server.service import DpServicer
from dp_service.server.stream_assembler import StreamAssembler
from tests.support.dp_questions import POLICY, answer_of, header, question, released, translated
from tests.support.dp_server import servicer_of, serving

OLD, NEW = NoiseKey(b"o" * 32), NoiseKey(b"n" * 32)
EVENTS = question_pb2.MEASURE_EVENTS

Patch = Callable[[pytest.MonkeyPatch], None]


def holding(key_set: KeySet, policy: str = POLICY) -> DpServicer:
    """Return a service with these keys."""
    return servicer_of(policy, key_set)


async def ids_under(
    key: NoiseKey, asked: question_pb2.Question, policy: str = POLICY
) -> tuple[str, str, str]:
    """Return what a service with this key calls the question, its release and the data."""
    async with serving(holding(KeySet(key), policy)) as dp:
        shown = (await released(dp, asked, "article")).release.shown
    return shown.query_id, shown.release_id, shown.data_version


def nothing_in_common(first: tuple[str, ...], second: tuple[str, ...]) -> bool:
    """Return whether two sets of ids differ everywhere."""
    return not set(first) & set(second)


async def ids_tell_nothing_without_the_key() -> bool:
    """Two secrets give different ids even if everything public about them, their names included, is the same."""
    with pytest.MonkeyPatch.context() as names:
        names.setattr(keys.NoiseKey, "key_id", "0" * 16)
        return nothing_in_common(await ids_under(OLD, question()), await ids_under(NEW, question()))


async def a_second_fresh_release_is_charged() -> bool:
    """In fresh mode neither the question nor the release is ever a known one."""
    async with serving(holding(KeySet(OLD))) as dp:
        asked = question(table="drawn_anew")
        first, second = [(await released(dp, asked, "article")).release.bill for _ in range(2)]
    return nothing_in_common((first.query_id, first.release_id), (second.query_id, second.release_id))


async def a_release_after_a_rotation_is_charged() -> bool:
    """What was paid under the old key is not known under the new one."""
    return nothing_in_common(await ids_under(OLD, question()), await ids_under(NEW, question()))


async def a_rotation_does_not_draw_a_paid_question_again() -> bool:
    """A plan that is released on both sides of a rotation gives one release: its query_id is paid once only."""
    async with (
        serving(holding(KeySet(OLD))) as before,
        serving(holding(KeySet(NEW, (OLD,)))) as after,
    ):
        plan = await translated(before, question())
        request = dp_pb2.AddNoiseUnaryRequest(header=header(plan), histogram=answer_of("article"))
        first, second = [await dp.AddNoiseUnary(request) for dp in (before, after)]
        return bool(first == second)


async def a_changed_tau_is_another_release() -> bool:
    """The same words under another tau share no noise: two scales on one draw would give the count away."""
    asked = question(measure=EVENTS)
    other = POLICY.replace("tau: 3", "tau: 4")
    first, second = await ids_under(OLD, asked), await ids_under(OLD, asked, other)
    return nothing_in_common(first[:2], second[:2])


CLAIMS = [
    ids_tell_nothing_without_the_key,
    a_second_fresh_release_is_charged,
    a_release_after_a_rotation_is_charged,
    a_rotation_does_not_draw_a_paid_question_again,
    a_changed_tau_is_another_release,
]


@pytest.mark.parametrize("claim", CLAIMS)
async def test_nothing_is_free_but_the_same_release(claim: Callable[[], Awaitable[bool]]) -> None:
    """Every claim holds for the code as it is."""
    assert await claim()


def plain_hash(_: object, *parts: object) -> str:
    """Hash without the key."""
    return hashlib.sha256(length_prefixed(*(str(part).encode() for part in parts))).hexdigest()


def unkeyed_authentication(patch: pytest.MonkeyPatch) -> None:
    """A plain hash stands where the HMAC was, for everything but plans."""
    real = NoiseKey.authenticate

    def authenticate(self: NoiseKey, use: KeyUse, *parts: bytes) -> bytes:
        plain = hashlib.sha256(length_prefixed(use.value.encode(), *parts)).digest()
        return real(self, use, *parts) if use is KeyUse.PLAN else plain

    patch.setattr(NoiseKey, "authenticate", authenticate)


def unkeyed_query_id(patch: pytest.MonkeyPatch) -> None:
    """The query id is a plain hash."""
    patch.setattr(translation, "query_id", plain_hash)


def unkeyed_seed(patch: pytest.MonkeyPatch) -> None:
    """The seed, and so the release id, is a plain hash of specification and counts."""
    patch.setattr(releasing, "release_seed", lambda *parts: bytes.fromhex(plain_hash(*parts)))


def unkeyed_data_version(patch: pytest.MonkeyPatch) -> None:
    """Results show a plain hash of the segments' checksums."""
    patch.setattr(responses, "keyed_data_version", plain_hash)


def query_id_without_fresh_bytes(patch: pytest.MonkeyPatch) -> None:
    """The fresh bytes enter the noise but not the question: the second release is a known question, and free."""
    patch.setattr(translation, "query_id", lambda *parts: release_ids.query_id(*parts[:3]))


def seed_without_fresh_bytes(patch: pytest.MonkeyPatch) -> None:
    """The fresh bytes enter the question but not the noise: every release is the same one."""
    patch.setattr(releasing, "release_seed", lambda *parts: release_ids.release_seed(*parts[:4]))


def one_key_for_query_ids(patch: pytest.MonkeyPatch) -> None:
    """The query id survives a rotation: the new key's noise is free for an account that paid for the old key's."""
    patch.setattr(translation, "query_id", lambda _, *parts: release_ids.query_id(OLD, *parts))


def noise_of_the_current_key(patch: pytest.MonkeyPatch) -> None:
    """An old plan is drawn with the new key: a second draw under a query id that is paid already."""
    real = stream_assembler.begin

    def begin(head: dp_pb2.ReleaseHeader, key_set: KeySet, *, now: int) -> StreamAssembler:
        return dataclasses.replace(real(head, key_set, now=now), key=key_set.current)

    patch.setattr(service, "begin", begin)


def specification_without_tau(patch: pytest.MonkeyPatch) -> None:
    """The release specification forgets tau."""

    def forgetful(asked: bytes, parameters: ReleaseParameters, **versions: Any) -> bytes:
        return release_ids.release_specification(asked, dataclasses.replace(parameters, tau=1), **versions)

    patch.setattr(translation, "release_specification", forgetful)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("claim", "wrong_form"),
    [
        (ids_tell_nothing_without_the_key, unkeyed_authentication),
        (ids_tell_nothing_without_the_key, unkeyed_query_id),
        (ids_tell_nothing_without_the_key, unkeyed_seed),
        (ids_tell_nothing_without_the_key, unkeyed_data_version),
        (a_second_fresh_release_is_charged, query_id_without_fresh_bytes),
        (a_second_fresh_release_is_charged, seed_without_fresh_bytes),
        (a_release_after_a_rotation_is_charged, one_key_for_query_ids),
        (a_release_after_a_rotation_is_charged, unkeyed_authentication),
        (a_rotation_does_not_draw_a_paid_question_again, noise_of_the_current_key),
        (a_changed_tau_is_another_release, specification_without_tau),
    ],
)
async def test_a_wrong_form_is_found(
    monkeypatch: pytest.MonkeyPatch, claim: Callable[[], Awaitable[bool]], wrong_form: Patch
) -> None:
    """The claim fails as soon as the wrong form is in place."""
    wrong_form(monkeypatch)
    assert not await claim()
