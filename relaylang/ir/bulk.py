"""For work that makes very many objects, most of which stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pause the garbage collector while a large graph is built.

    Its repeated walks over the growing graph double the time to build a hundred thousand nodes. Reference counts still
    free every object that is not part of a cycle.
    """
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


@contextmanager
def gc_relaxed() -> Iterator[None]:
    """Let the garbage collector look for cycles more rarely: for work of unknown length, which may leave some behind."""
    old = gc.get_threshold()
    gc.set_threshold(max(old[0], 100_000) if old[0] else 0, *old[1:])
    try:
        yield
    finally:
        gc.set_threshold(*old)
