"""`gris ask`."""

from __future__ import annotations

from dataclasses import replace

from gris_cli.flag_groups import with_flags
from gris_cli.flags import AskFlags, ConnectionFlags


@with_flags
def ask(question: AskFlags, as_json: bool, connection: ConnectionFlags) -> None:
    """Ask a question privately and pay for it."""
    from gris_cli.clients import connected, remaining_after
    from gris_cli.printing import print_check, print_explanation, print_result
    from gris_cli.question_arguments import (
        flags_named,
        is_only_a_check,
        question_of,
        require_data_of,
    )
    from pinot_connector.budgets import questions_left

    if is_only_a_check(question):
        print_check(as_json=as_json)
        return
    with flags_named(question):
        asked = question_of(question)
        with connected(connection) as client:
            require_data_of(question.table, connection.data)
            result = client.ask(asked, confidence=question.confidence, max_cost=question.max_cost)
            if result.explanation is not None:
                print_explanation(result.explanation, as_json=as_json)
                return
            # If it was paid for before, the ledger was not asked.
            result = replace(result, remaining=remaining_after(result.remaining, client))
    left = questions_left(result.remaining, result.cost)
    print_result(result, left, as_json=as_json, verbose=question.verbose)
