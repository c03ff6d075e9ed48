"""The share of the machine that this process may use: processors and memory, as affinity and control groups allow."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")
_MEMINFO = Path("/proc/meminfo")
#: Without a caller's limit, a program may take half of the memory left, and this at most.
DEFAULT_LIMIT = 4 << 30
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def usable_cpus() -> int:
    """The number of processors: those that the affinity allows (`taskset`), no more than the group's quota pays for."""
    try:
        count = len(os.sched_getaffinity(0))
    except (AttributeError, OSError):  # not Linux
        count = os.cpu_count() or 1
    return max(1, min([count, *cpu_quotas()]))


def cpu_quotas() -> list[int]:
    """The processors that each control group around this process pays for, rounded up; nothing where none has a quota."""
    out = []
    for folder in _folders("cpu"):
        words = _words(folder / "cpu.max")  # version 2: quota and period, or "max"
        if not words:
            words = [*_words(folder / "cpu.cfs_quota_us"), *_words(folder / "cpu.cfs_period_us")]
        if len(words) == 2 and words[0].isdigit() and words[1].isdigit() and int(words[1]) > 0:
            out.append(max(1, -(-int(words[0]) // int(words[1]))))
    return out


def available_memory() -> int | None:
    """Bytes that this process can still get without swapping; None where the system does not say."""
    free = []
    try:
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                free.append(int(line.split()[1]) * 1024)
    except (OSError, ValueError, IndexError):
        pass
    for folder in _folders("memory"):
        for limit, used in (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")):
            allowed, taken = _words(folder / limit), _words(folder / used)
            if allowed and allowed[0].isdigit() and taken and taken[0].isdigit():
                free.append(max(0, int(allowed[0]) - int(taken[0])))
    return min(free) if free else None


@cache
def default_limit() -> int:
    """The bytes that a program may take without a caller's limit, by the memory that is left at the first call."""
    left = available_memory()
    return min(DEFAULT_LIMIT, left // 2) if left is not None else DEFAULT_LIMIT


def resident_memory() -> int | None:
    """Bytes of this process that lie in memory now; None where the system does not say."""
    return _own_memory(1)


def virtual_memory() -> int | None:
    """Bytes of this process's addresses; None where the system does not say."""
    return _own_memory(0)


def _own_memory(column: int) -> int | None:
    try:
        file = os.open("/proc/self/statm", os.O_RDONLY)
        try:
            return int(os.read(file, 100).split()[column]) * _PAGE
        finally:
            os.close(file)
    except (OSError, ValueError, IndexError):
        return None


def _folders(controller: str) -> list[Path]:
    """The folders of this process's control group of a kind, from its own up to the root's."""
    out: list[Path] = []
    try:
        lines = _OWN.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return out
    for line in lines:
        parts = line.split(":", 2)
        if len(parts) != 3 or (parts[1] and controller not in parts[1].split(",")):
            continue
        # Version 2 has one tree without a name. In a container the path may be the host's; the root is then its own.
        roots = [_GROUPS] if not parts[1] else [_GROUPS / parts[1], _GROUPS / controller]
        for root in roots:
            folder = root / parts[2].strip("/")
            while True:
                if folder.is_dir() and folder not in out:
                    out.append(folder)
                if folder == root or root not in folder.parents:
                    break
                folder = folder.parent
    return out


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except (OSError, UnicodeDecodeError):
        return []


__all__ = ["available_memory", "cpu_quotas", "resident_memory", "usable_cpus", "virtual_memory"]
