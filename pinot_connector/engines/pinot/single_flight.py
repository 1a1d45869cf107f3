"""One reading for all callers who wait for one."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock
from typing import Generic, TypeVar

_Value = TypeVar("_Value")


class SingleFlight(Generic[_Value]):
    """Gives each caller what was read after it asked, and reads once for all who ask while another reading goes on.

    A reading that has begun may be older than a question that is asked now, so later callers do not get it: they wait
    together for the next. Thread-safe.

    Args:
        read: reads the value.
        timeout_seconds: how long a reading waits for the one before it to end; a reading that hangs must not hold up
            all that come after it.
    """

    def __init__(self, read: Callable[[], _Value], *, timeout_seconds: float = 1.0) -> None:
        self._read = read
        self._timeout_seconds = timeout_seconds
        self._one_at_a_time = Lock()
        self._lock = Lock()
        self._next: Future[_Value] | None = None

    def value(self) -> _Value:
        """Returns the value of a reading that began after this call, or raises its error."""
        with self._lock:
            is_first = self._next is None
            reading = self._next = self._next or Future()
        if is_first:
            self._read_for_all(reading)
        return reading.result()

    def _read_for_all(self, reading: Future[_Value]) -> None:
        is_alone = self._one_at_a_time.acquire(timeout=self._timeout_seconds)
        try:
            with self._lock:
                # Callers from now on are too late for this reading.
                self._next = None
            reading.set_result(self._read())
        except BaseException as error:
            reading.set_exception(error)
        finally:
            if is_alone:
                self._one_at_a_time.release()
