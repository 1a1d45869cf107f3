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

    if is_only_a_check(question):
        print_check(as_json=as_json)
        return
    with flags_named(question):
        explanation = fetch_explanation(connection, question_of(question))
    print_explanation(explanation, as_json=as_json)
