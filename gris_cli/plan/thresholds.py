"""`gris plan thresholds`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gris_cli.flag_groups import flag, required, with_flags
from gris_cli.inputs import named_by, named_errors
from gris_cli.plan.flags import DELTA, EPSILON_PER, SLACK, EpsilonPerFlag, OutFlag


@dataclass(frozen=True)
class TableFlags:
    """Whose rows are looked at, and by which columns questions are asked."""

    data: Path = required("Your Parquet file, folder or pattern, or DuckDB file with a table `data`.")
    member: str = required("The column of members.")
    by: str = required(
        "The columns that questions group by or set conditions on, up to four.", metavar="COLUMN,COLUMN.."
    )
    k: int = flag(50, "The fewest members of a group that is shown.", min=2, max=10**9)

    def columns(self) -> list[str]:
        """Return the columns of questions."""
        return [each.strip() for each in self.by.split(",")]


@with_flags
def thresholds(
    *, table: TableFlags, epsilon_per: EpsilonPerFlag = EPSILON_PER, out: OutFlag = None, as_json: bool
) -> None:
    """Show whom "only groups of k members or more" reveals on your own table, beside Gris. For the owner of the data.

    Two questions that the rule allows are subtracted, such as a cohort with and without one day: where one member alone
    makes the difference, it shows what this member did. Printed are true shares of members, for the owner alone.
    """
    from dataclasses import asdict

    from gris_cli.sheets import print_sheets
    from gris_cli.terminal import say
    from gris_data.input_files import require_table_file
    from gris_data.thresholds import singled_out
    from gris_lab import thresholds as lab
    from gris_lab.plots import check_plot

    check_plot(out)
    with named_by("--data"):
        require_table_file(table.data)
    with named_errors():
        attacked = lab.attack(epsilon_per, DELTA, SLACK)
    found = singled_out(table.data, table.member, table.columns(), table.k, lab.THRESHOLDS)
    if out:
        lab.draw_thresholds(found, attacked, table.k, out, source=table.data.name)
    if not as_json:
        say("", f"{lab.headline(found, table.k)}; true counts, for the owner alone")
    print_sheets(
        lab.threshold_sheets(found, attacked, table.k),
        {"all_members": found.members, "k": table.k, "gris": asdict(attacked)},
        as_json=as_json,
    )
