"""What scripts ask of parts of TVM that relaylang lacks: a part is not there, or does nothing.

`relaylang.tvm.names` has a row for each name. Of the tuners there are logs: programs are built with the CPU backend's schedules.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from typing import Any


def has_cudnn() -> bool:
    """Whether NVIDIA's library of kernels is there: it is not."""
    return False


def have_fp16(compute_version: str) -> bool:
    """Whether a GPU computes with float16: there is none here."""
    return False


def llvm_version_major(allow_none: bool = False) -> int | None:
    """The version of LLVM: 0, or None with `allow_none`, as there is none."""
    return None if allow_none else 0


def libinfo() -> dict[str, str]:
    """The libraries that a build of TVM is linked with, each OFF."""
    return defaultdict(lambda: "OFF")


def install_request_hook(depth: int) -> None:
    """Does nothing: in TVM's own builds it lets downloads of tutorials go to a mirror."""


class TECompiler:
    """The cache of kernels, which keeps nothing: every program is compiled for itself."""

    def clear(self) -> None:
        """Forget all kernels: there are none."""


def te_compiler() -> TECompiler:
    """The cache of this process."""
    return TECompiler()


class DefaultSchedules:
    """A `with` block whose programs are built with the default schedules. A log that is given has no effect, with a warning."""

    def __init__(self, records: Any = None, *_: Any, **__: Any) -> None:
        if records is not None:
            note = "relaylang does not read logs of TVM's tuners: the program is built with the default schedules"
            warnings.warn(note, stacklevel=2)

    def __enter__(self) -> DefaultSchedules:
        return self

    def __exit__(self, *_: object) -> None:
        """The block ends."""


class FallbackContext(DefaultSchedules):
    """The default schedules, without a log."""

    def __init__(self) -> None:
        super().__init__()


class ApplyHistoryBest(DefaultSchedules):
    """The default schedules, in place of the best ones of a log."""


def apply_history_best(dispatcher: Any) -> ApplyHistoryBest:
    """The default schedules, in place of the best ones of a log, with a warning."""
    return ApplyHistoryBest(dispatcher)


class ApplyHistoryBestOrSample(DefaultSchedules):
    """The default schedules, in place of those of a log or of a sample."""
