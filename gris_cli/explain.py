"""`gris explain`."""

from __future__ import annotations

from gris_cli.flag_groups import with_flags
from gris_cli.flags import ConnectionFlags, QuestionFlags


@with_flags
def explain(question: QuestionFlags, connection: ConnectionFlags, as_json: bool) -> None:
    """Show what a question would cost at most, without asking it. Takes every flag of ask."""
    from gris_cli.clients import fetch_explanation
    from gris_cli.printing import print_check, print_explanation
    from gris_cli.question_arguments import flags_named, is_only_a_check, question_of
    from pinot_connector.budgets import require_within
    from pinot_connector.checked_arguments import require_max_cost

    if is_only_a_check(question):
        print_check(as_json=as_json)
        return
    with flags_named(question):
        require_max_cost(question.max_cost)
        explanation = fetch_explanation(connection, question_of(question))
        require_within(question.max_cost, explanation.worst_case_cost)
    print_explanation(explanation, as_json=as_json)
