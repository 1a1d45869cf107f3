"""Costs, budgets and guarantees as people read them."""

from __future__ import annotations

import math

from pinot_connector import formats
from pinot_connector.budgets import Cost, Share
from pinot_connector.errors import Shortfall
from pinot_connector.guarantees import AccountGuarantee, Guarantee, Sharing
from pinot_connector.parameters import Consistency
from pinot_connector.results import Explanation


def format_share(share: Share) -> str:
    """Return the share of one level's budget that a question takes in one unit, as text."""
    return f"{share.unit} of {share.name}: {formats.share(share)}"


def format_questions_left(explanation: Explanation) -> str:
    """Return which budget ends first if a question is repeated, and after how often; empty if none does."""
    share = explanation.narrowest
    if share is None:
        return ""
    asked = formats.counted(share.remaining // share.cost, "question")
    ends = f"enough for {asked} like this one, by the {share.unit} of {share.name}"
    repeats = explanation.parameters.consistency is Consistency.KEYED
    return ends + ("; one that is paid for is free while the data stay the same" if repeats else "")


def format_more_questions(more: int | None) -> str:
    """Return for how many more questions a budget lasts, empty if nothing limits them."""
    return (
        ""
        if more is None
        else f"enough for {formats.counted(more, 'more question')} at the price of this one"
    )


def format_guarantee(guarantee: AccountGuarantee) -> str:
    """Return the guarantee for everything that an account is shown in a window, as text."""
    account = "/".join(guarantee.account)
    holds = guarantee.holds
    level = "/".join(holds.path)
    if holds.limit is None:
        return f"nothing bounds what {account} is shown: the limit of {level} is recorded but not enforced"
    if holds.guarantee is None:
        return (
            f"nothing bounds what {account} is shown: {level} is refreshed too often while its own budget lasts, more "
            "was spent there than its limit allows, it had no limit at first, or one of other windows, or the previous "
            "currency counts there"
        )
    if holds.guarantee.delta >= 1:
        return f"nothing bounds what {account} is shown: delta reaches 1 for {_format_limit(holds.limit)}"
    private = f"all that {account} is shown is {_format_privacy(holds.guarantee)}"
    if guarantee.sharing is Sharing.NONE:
        return f"{private}, for {_format_limit(holds.limit)}"
    counted_there = f"of which {_format_limit(holds.limit)} are counted"
    if guarantee.sharing is Sharing.COSTS:
        return f"{private}: it sees what others' results cost {level}, {counted_there}"
    return (
        f"{private}: it sees what others take from {level}, {counted_there}; levels above count worst cases: a charge "
        "there does not show how a release ended, but how many questions others asked still shows"
    )


def format_own_guarantee(guarantee: AccountGuarantee) -> str:
    """Return the guarantee for an account's own results, empty where it is shown nothing else."""
    own = guarantee.own
    if guarantee.sharing is Sharing.NONE or own == guarantee.shared:
        return ""
    if own.limit is None:
        return "recorded but not enforced"
    if own.guarantee is None:
        return "more was spent than its limit allows, it had none at first, or the previous currency counts"
    if own.guarantee.delta >= 1:
        return f"{_format_limit(own.limit)}; delta reaches 1, so nothing is promised for its own results"
    return f"{_format_limit(own.limit)}; its own results alone are {_format_privacy(own.guarantee)}"


def _format_privacy(guarantee: Guarantee) -> str:
    # Both are rounded up: a smaller number would promise too much.
    epsilon = math.ceil(guarantee.epsilon * 100) / 100
    delta = formats.rounded_up(guarantee.delta)
    domains = guarantee.domain_count
    what = "domain or bound" if domains == 1 else "domains or bounds"
    published = f", with {domains} published {what}" if domains else ""
    published += (
        f", counted {guarantee.times} times, as a member may be of so many blocks"
        if guarantee.times > 1
        else ""
    )
    return f"({epsilon:.2f}, {delta})-differentially private for every member{published}"


def _format_limit(limit: Cost) -> str:
    return f"{limit.information} information and {formats.counted(limit.calls, 'call')}"


def format_shortfall(shortfall: Shortfall) -> str:
    """Return what is missing on which level, as text."""
    asked = f"{shortfall.requested} asked for, {shortfall.remaining} left"
    return f"{shortfall.name}, {shortfall.unit}: {asked}, {formats.refresh(shortfall.refreshes_at)}"
