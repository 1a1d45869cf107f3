"""`gris guarantee`."""

from __future__ import annotations

from typing import Annotated

import typer

from gris_cli.flags import (
    DEFAULT_BUDGET,
    DEFAULT_DIRECTORY,
    DEFAULT_DP,
    AccountFlag,
    BudgetFlag,
    ConnectionFlags,
    DirectoryFlag,
    DpFlag,
    EmbeddedFlag,
    ExamplesFlag,
    GatewayFlag,
    JsonFlag,
    OwnBudgetsFlag,
    OwnPolicyFlag,
    require_used,
)

# typer copies a list before it hands it over.
NO_DOMAINS: list[str] = []


def guarantee(  # noqa: PLR0917 - typer calls it by name
    context: typer.Context,
    domains: Annotated[
        list[str],
        typer.Option(
            "--domain",
            metavar="RHO:DELTA",
            help="A published domain or bound that the account saw, besides those that are counted anyway; repeatable.",
        ),
    ] = NO_DOMAINS,
    dp: DpFlag = DEFAULT_DP,
    budget: BudgetFlag = DEFAULT_BUDGET,
    gateway: GatewayFlag = "",
    account: AccountFlag = "",
    embedded: EmbeddedFlag = False,
    policy: OwnPolicyFlag = None,
    budget_config: OwnBudgetsFlag = None,
    directory: DirectoryFlag = DEFAULT_DIRECTORY,
    examples: ExamplesFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Show the guarantee for everything that an account is shown in a window, whatever it asks. Needs no engine."""
    from gris_cli.clients import fetch_guarantee  # noqa: PLC0415 - `gris --help` should not load gRPC
    from gris_cli.printing import print_guarantee  # noqa: PLC0415

    flags = ConnectionFlags(
        dp=dp,
        budget=budget,
        gateway=gateway,
        account=account,
        embedded=embedded,
        policy=policy,
        budget_config=budget_config,
        directory=directory,
        examples=examples,
    )
    require_used(context, flags)
    print_guarantee(fetch_guarantee(flags, domains), as_json=as_json)
