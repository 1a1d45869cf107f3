"""Arguments of every call that are checked before anything is sent."""

from __future__ import annotations

from collections.abc import Sequence

from pinot_connector.errors import InvalidQuestion


def checked_text(field: str, text: object) -> str:
    """Returns a text if a message can hold it.

    Raises:
        InvalidQuestion: it is no text, or has half of a surrogate pair; the message names the field, not the text.
    """
    if not isinstance(text, str):
        raise InvalidQuestion(field, "expected a text")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidQuestion(field, "expected a text without lone surrogates") from None
    return text


def require_confidence(confidence: float) -> None:
    """Raises InvalidQuestion unless it is a number strictly between 0.5 and 1."""
    # In a message, 0 is no number, which means a default.
    if not isinstance(confidence, float) or not 0.5 < confidence < 1:
        raise InvalidQuestion(
            "confidence", f"expected a number strictly between 0.5 and 1, got {confidence!r}"
        )


def require_max_cost(max_cost: int | None) -> None:
    """Raises InvalidQuestion unless it is None or a number of information units."""
    if max_cost is not None:
        require_units("max_cost", max_cost)


def require_units(field: str, units: int) -> None:
    """Raises InvalidQuestion unless it is a number of information units that a message can hold."""
    if type(units) is not int or not 0 <= units < 2**63:
        raise InvalidQuestion(field, "expected a whole number of information units, at least 0")


def checked_texts(field: str, texts: object) -> list[str]:
    """Returns several texts if a message can hold them.

    Raises:
        InvalidQuestion: it is no sequence of texts, or one has half of a surrogate pair.
    """
    if not isinstance(texts, Sequence):
        raise InvalidQuestion(field, "expected a text, or a sequence of texts")
    return [checked_text(field, text) for text in texts]
