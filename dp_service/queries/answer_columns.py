"""What queries call the columns that an answer has of its own."""

from __future__ import annotations

RESERVED_PREFIX = "gris_"
"""How all of these begin, and no name of a policy: in a query a column of the table would take the place of its own."""

COUNT_COLUMN = "gris_count"
BUCKET_COLUMN = "gris_bucket"
WHOLE_BIN_COLUMN = "gris_case"
BIN_COLUMN = "gris_bin"
PART_OF_TEXT_COLUMN = "gris_part_of_text"
FIRST_COUNT_COLUMN = "gris_first_count"
MEMBER_COUNT_COLUMN = "gris_member_count"
CELL_COLUMN = "gris_cell"
LOOKUP_COLUMNS = ("gris_key", "gris_text")
"""The keys of a lookup, and their texts."""
