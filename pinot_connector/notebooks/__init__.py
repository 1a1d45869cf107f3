"""How results and prices are shown in notebooks, and what pandas, Arrow and matplotlib make of them.

The libraries are those of the extra `notebook`; each is imported when it is first needed, so that a client loads none.
Elements are data that strangers wrote. HTML shows them as text: markup is escaped, characters that cannot be seen or
turn the direction of writing are replaced, and in pictures a `$` begins no formula. Frames hold elements unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pinot_connector.results import Explanation, PrivateResult


class ResultViews:
    """What a `PrivateResult` can be shown as, or turned into. Nothing is asked or charged."""

    def __str__(self) -> str:
        from pinot_connector.notebooks.text import result_text  # noqa: PLC0415 - results import this module

        return result_text(self._result())

    def _repr_html_(self) -> str:
        from pinot_connector.notebooks.html import result_html  # noqa: PLC0415 - results import this module

        return result_html(self._result())

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Prints a table where a notebook or a console shows no HTML; `repr` has everything."""
        printer.text(str(self))

    def to_pandas(self) -> Any:
        """Returns a `pandas.DataFrame`: the elements' columns, the count, and both ends of its interval.

        Names are those of the DB-API: the count's alias or `count`, with `_lower` and `_upper` for its interval.
        `attrs` has `release_id`, `confidence`, and `bottom` where the result ended in bottom.

        Raises:
            ModuleNotFoundError: pandas is not installed (extra `notebook`).

        Example:
            >>> frame = client.top_k("feedback", "article_id", 5).to_pandas()
            >>> list(frame.columns)
            ['article_id', 'count', 'count_lower', 'count_upper']
        """
        from pinot_connector.notebooks.frames import result_frame  # noqa: PLC0415 - needs an extra

        return result_frame(self._result())

    def plot(self, *, series: bool | None = None, axes: Any = None) -> Any:
        """Draws the counts with their intervals, and where the result ended in bottom its noisy threshold.

        Args:
            series: True: a line with a band, in the order of the elements; False: ranked bars with error bars; None:
                a series if the elements are days.
            axes: Axes of matplotlib to draw on; None: a new figure.

        Returns:
            The axes.

        Raises:
            InvalidQuestion: the result has no counts, or a series would have elements of several columns.
            ModuleNotFoundError: matplotlib is not installed (extra `notebook`).

        Example:
            >>> axes = client.top_k("feedback", "article_id", 5).plot()
            >>> axes.get_xlabel()
            'members'
        """
        from pinot_connector.notebooks.plots import plotted  # noqa: PLC0415 - needs an extra

        return plotted(self._result(), series=series, axes=axes)

    def _result(self) -> PrivateResult:
        return cast("PrivateResult", self)


class ExplanationViews:
    """What an `Explanation` is shown as in a notebook."""

    def _repr_html_(self) -> str:
        from pinot_connector.notebooks.html import explanation_html  # noqa: PLC0415 - results import this module

        return explanation_html(cast("Explanation", self))
