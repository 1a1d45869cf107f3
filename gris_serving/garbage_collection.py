"""Python's garbage collector in a process that serves: it looks less often, and not at what was loaded at the start."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# A call leaves only five small objects of gRPC in reference cycles, so there is little to collect. Examining this many
# new objects takes a few milliseconds.
OBJECTS_BEFORE_COLLECTION = 20_000


@contextmanager
def spared_collector() -> Iterator[None]:
    """Exclude what is loaded from Python's garbage collection while the block runs, and run it less often.

    It would take a tenth of the time of a charge. To be entered once per process, when everything is imported.
    """
    gc.collect()
    gc.freeze()
    thresholds = gc.get_threshold()
    gc.set_threshold(OBJECTS_BEFORE_COLLECTION)
    try:
        yield
    finally:
        # Extensions whose objects are never collected report leaks when the process ends.
        gc.set_threshold(*thresholds)
        gc.unfreeze()


@contextmanager
def paused_collector() -> Iterator[None]:
    """Let the block make many objects that stay: garbage collection never looks at them, meanwhile or later.

    Other threads, which wait while it looks, go on without it meanwhile. What they have left in reference cycles since
    the last collection stays too.
    """
    gc.collect(0)
    with no_collection():
        try:
            yield
        finally:
            gc.freeze()


@contextmanager
def no_collection() -> Iterator[None]:
    """Let the block make very many objects without Python looking at all of them again and again."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
