"""For work that makes very many objects, most of which stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Iterator[None]:
    """Keep the garbage collector from walking a growing graph again and again, which doubles the time that it takes to
    build one of a hundred thousand nodes. What is not referred to any more is freed as always, but for cycles."""
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
