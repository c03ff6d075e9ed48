"""`tvm.contrib.download`: files from the network, kept in a folder of the user's."""

from __future__ import annotations

import os
from collections.abc import Sequence
from http.client import HTTPException
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from relaylang.diagnostics import RelayError, error
from relaylang.runtime.files import atomic_path
from relaylang.runtime.text import reason


def download(url: str, path: str | os.PathLike[str], overwrite: bool = False, size_compare: bool = False, retries: int = 3) -> None:
    """Fetch a file. One that is there stays, unless `overwrite`, or with `size_compare` where the sizes differ.

    Raises `RelayError` (R0001) where the file cannot be fetched; nothing is left of a transfer that breaks off.
    """
    target = Path(path)
    for left in reversed(range(max(retries, 1))):
        try:
            if target.is_file() and not overwrite and not size_compare:
                return
            with urlopen(url, timeout=60) as source:
                size = source.headers.get("Content-Length")
                if target.is_file() and not overwrite and size is not None and target.stat().st_size == int(size):
                    return
                target.parent.mkdir(parents=True, exist_ok=True)
                with atomic_path(target) as temporary, open(temporary, "wb") as out:
                    while block := source.read(1 << 20):
                        out.write(block)
            return
        except (OSError, ValueError, HTTPException) as e:
            if left:
                continue
            said = e.reason if isinstance(e, URLError) and isinstance(e.reason, Exception) else e
            notes = [f"put the file there by hand: {target}"]
            raise RelayError(error("R0001", f"cannot fetch {url}: {reason(said)}", notes=notes)) from None


def download_testdata(url: str, relpath: str, module: Sequence[str] | str | None = None, overwrite: bool = False) -> str:
    """Fetch a file to `~/.tvm_test_data/MODULE/RELPATH`, once, and return its path.

    `TEST_DATA_ROOT_PATH` in the environment names another folder. Raises `RelayError` (R0001).
    """
    root = Path(os.environ.get("TEST_DATA_ROOT_PATH") or Path.home() / ".tvm_test_data")
    parts = [module] if isinstance(module, str) else list(module or ())
    path = root.joinpath(*parts, relpath)
    download(url, path, overwrite)
    return str(path)
