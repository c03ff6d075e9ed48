"""Installs what tests of importers and exporters compare with, and downloads the real networks.

    .venv/bin/python scripts/peers.py

The packages are those of the extra `peers`, PyTorch, and those that its tests need. `torch==2.13.0+cpu` names the build
for processors alone, so pip never gets the one for graphics cards. For this reason, torchvision comes without its own
requirements. Without one of the packages, its tests skip with a reason.
"""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TORCH = "torch==2.13.0+cpu"
#: torchvision's networks, and PyTorch's samples of its operators.
WITH_TORCH = ["torchvision==0.28.0", "pillow", "expecttest"]
SECONDS = 300  # for one package


def peers() -> list[str]:
    """The requirements of the extra, PyTorch, and what its tests need."""
    stated = metadata.requires("relaylang") or []
    return [r.partition(";")[0].strip() for r in stated if re.search(r"extra == ['\"]peers['\"]", r)] + [TORCH, *WITH_TORCH]


def install(requirement: str) -> str:
    """Install a package from wheels; gives "", or the reason why that fails."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    alone = ["--no-deps"] if requirement in WITH_TORCH else []
    try:
        run = subprocess.run([*pip, "--only-binary=:all:", *alone, requirement], capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"it takes more than {SECONDS} s"
    errors = [line for line in run.stderr.splitlines() if line.startswith("ERROR")] or ["pip fails"]
    return errors[-1].removeprefix("ERROR: ") if run.returncode else ""


def main() -> None:
    for requirement in peers():
        why = install(requirement)
        if why:
            print(f"tests with {requirement} skip: {why}", flush=True)
    subprocess.run([sys.executable, "-m", "tests.frontends.networks"], cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
