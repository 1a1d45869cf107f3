"""`gris why`."""

from __future__ import annotations

from typing import Annotated

import typer

from gris_cli.flag_groups import with_flags
from gris_cli.flags import ConnectionFlags, QuestionFlags


@with_flags
def why(
    *,
    request: Annotated[
        str, typer.Argument(metavar="REQUEST", help="The id that a gateway's refusal showed.")
    ] = "",
    question: QuestionFlags,
    connection: ConnectionFlags,
    as_json: bool,
) -> None:
    """Show why a question was refused, and what would be needed now. Takes a request's id, or every flag of ask."""
    from gris_cli.clients import pricing
    from gris_cli.question_arguments import flags_named, question_of
    from gris_cli.refusals import Needed, fetch_refusal, print_refusal

    if request and question != QuestionFlags():
        raise typer.BadParameter("give the id of a request, or a question: its id says which one it was")
    refused = fetch_refusal(connection, request) if request else None
    with flags_named(question):
        asked = question_of(question) if refused is None else refused.question
        with pricing(connection) as prices:
            needed = Needed.of(prices, asked, is_refused=refused is not None)
    print_refusal(refused, needed, as_json=as_json)
