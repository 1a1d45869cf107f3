"""Tables of numbers as one web page, which prints on one sheet of paper and needs nothing beside it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from gris_data.sheets import Sheet

_STYLE = """
@page { size: A4; margin: 8mm }
body { font: 13px/1.4 system-ui, sans-serif; color: #222; max-width: 1100px; margin: 1.2em auto; padding: 0 1em }
h1 { font-size: 1.5em; margin: 0 0 .2em } h2 { font-size: 1.1em; margin: 1.1em 0 .2em; color: #0072B2 }
p { margin: .2em 0 .4em } table { border-collapse: collapse; width: 100% }
td { white-space: nowrap } td.text:first-child { min-width: 12em } td.text:last-child { min-width: 16em }
td.text:first-child, td.text:last-child { white-space: normal; overflow-wrap: anywhere }
th, td { text-align: right; padding: .15em .6em; border-bottom: 1px solid #ddd; vertical-align: bottom }
th { font-weight: 600; color: #555 } .text { text-align: left }
@media print { body { font-size: 8px; margin: 0; padding: 0 } td.text:first-child { white-space: nowrap } }
"""


@dataclass(frozen=True)
class Part:
    """A part of a page: its head, what it says, and a table."""

    head: str
    text: str
    sheet: Sheet


def page(title: str, text: str, parts: Iterable[Part]) -> str:
    """Return a page in HTML; everything that is given is text."""
    body = "".join(map(_part, parts))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head>\n<body><h1>{escape(title)}</h1><p>{escape(text)}</p>{body}</body></html>\n"
    )


def _part(part: Part) -> str:
    columns = part.sheet.columns
    heads = "".join(f"<th{_kind(each.is_text)}>{escape(each.heading)}</th>" for each in columns)
    rows = "".join(
        "<tr>"
        + "".join(
            f"<td{_kind(each.is_text)}>{escape(each.format_cell(cell))}</td>"
            for each, cell in zip(columns, row, strict=True)
        )
        + "</tr>\n"
        for row in part.sheet.rows
    )
    text = f"<p>{escape(part.text)}</p>" if part.text else ""
    return f"\n<h2>{escape(part.head)}</h2>{text}<table><tr>{heads}</tr>\n{rows}</table>"


def _kind(is_text: bool) -> str:
    return ' class="text"' if is_text else ""
