"""The machine that a benchmark runs on, for the heads of its tables."""

from __future__ import annotations

import platform
from pathlib import Path


def model() -> str:
    """The processor's name, with its family and model: virtual machines call many processors by one name."""
    info = Path("/proc/cpuinfo")
    rows = [line.partition(":") for line in (info.read_text().splitlines() if info.exists() else [])]
    found = {key.strip(): value.strip() for key, _, value in reversed(rows)}
    name = found.get("model name", platform.machine())
    return f"{name}, family {found['cpu family']}, model {found['model']}" if {"cpu family", "model"} <= found.keys() else name
