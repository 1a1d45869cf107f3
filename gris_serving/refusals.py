"""Why a server does not answer what it was sent, in the statuses of HTTP, whatever protocol it speaks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus


@dataclass
class HttpRefusalError(Exception):
    """A request that is not answered; the message says what was expected, and shows nothing of the request."""

    status: HTTPStatus
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)
