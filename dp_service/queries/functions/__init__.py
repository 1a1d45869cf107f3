"""What a question groups by: a column, a function of one row, or a function of all of a member's rows.

    country                                              a column of the policy
    DATE_TRUNC('month', day)                             `buckets`: the bucket of time that a row is in
    EXTRACT(HOUR FROM viewed_at)                         `parts`: a part of its time
    FLOOR(price / 10) * 10                               `bins`, and `whole_bins` of a column of whole numbers
    SPLIT_PART(email, '@', 2)                            `parts_of_texts`: a part of a text
    FUNNEL_COUNT(STEPS(a, b), CORRELATE_BY(member))      `funnels`: the deepest step that a member's rows reach
    FUNNEL_COUNT(.., SETTINGS('strict_increase'))        `ordered_funnels`: the deepest in order of time
    DATE_TRUNC('month', MIN(day))                        `first_times`: the bucket that a member's first time is in
    DATE_DIFF('month', MIN(day), day)                    and how many buckets after its first a member's row is in

Each is one module: how it is asked, its canonical form and bytes, its domain and in how much of it one member can be,
what it reads, and what it is in words. Beside it are its reader in `sql` and its text in `render`; nobody else asks
which function it is.

Every function is of one row, or of the rows of one member within the other columns, so no member's rows change what
stands for another's. All values that a function can have follow from the question, the policy and the clock, and never
from the data, so its domain is known; that of a part of a text is where the column's is.

Which value a row has is a function of that row alone. So a member has at most as many values as there are, and of a
function of one column at most as many as it has values of the column. How many rows a member has in one value of a
column, where a policy only promises that, bounds nothing here: many values may have one image. Bounded contributions
bound members in these elements as in any other.

Functions of all of a member's rows need all of them: a copy that keeps some elements of a member has other first times
and steps than the table.
"""

from __future__ import annotations

from dp_service.queries.functions.bins import Binned
from dp_service.queries.functions.buckets import Truncated
from dp_service.queries.functions.first_times import FirstSeen, Later
from dp_service.queries.functions.function import Function
from dp_service.queries.functions.funnels import Funnel
from dp_service.queries.functions.ordered_funnels import OrderedFunnel
from dp_service.queries.functions.parts import Extracted
from dp_service.queries.functions.parts_of_texts import PartOfText
from dp_service.queries.functions.whole_bins import WholeBins

FUNCTIONS: tuple[type[Function], ...] = (
    Truncated,
    Extracted,
    WholeBins,
    Binned,
    PartOfText,
    Funnel,
    OrderedFunnel,
    FirstSeen,
    Later,
)
"""All that there are."""

NAMES_OF_MEMBERS = frozenset(name for each in FUNCTIONS if each.is_of_member for name in each.NAMES)
"""What queries call those of all of a member's rows."""
