"""Calibration data of `relay quantize`: an archive, a folder of arrays, or a function of a Python file."""

from __future__ import annotations

import runpy
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from relaylang.cli.inputs import load_array
from relaylang.cli.usage import UsageError
from relaylang.diagnostics import RelayError, did_you_mean, error
from relaylang.ir import Function
from relaylang.passes.manager import raised_in
from relaylang.quantize.dataset import checked
from relaylang.quantize.observe import Batch
from relaylang.quantize.prepare import refuse
from relaylang.runtime.params import load_params
from relaylang.runtime.trust import check_trusted

_ENDINGS = (".npz", ".npy", ".params", ".safetensors")


class Calibration:
    """The data that `--calibration` names: each iteration reads the batches again, so no more than one file is in memory.

    Raises `RelayError` and `UsageError` for files that are not there or of no known format, before anything is read.
    """

    def __init__(self, text: str, func: Function) -> None:
        self.text, self.func = text, func
        path, colon, name = text.rpartition(":")
        self._call: Any = None
        if colon and path.endswith(".py"):
            self._call = _function(path, name)
            self._files: list[Path] = []
        elif Path(text).is_dir():
            self._files = sorted(p for p in Path(text).iterdir() if p.suffix.lower() in _ENDINGS)
            if not self._files:
                raise refuse(f"{text} has no files of arrays", f"their names end in {', '.join(_ENDINGS)}")
        elif text.endswith(".py"):
            raise UsageError(f"relay quantize: --calibration {text}:NAME names a function of the file", "relay quantize --help")
        elif Path(text).suffix.lower() in _ENDINGS:
            self._files = [Path(text)]
        else:
            title = f"relay quantize: --calibration wants {', '.join(_ENDINGS)}, a folder of them, or FILE.py:FUNCTION, not {text}"
            raise UsageError(title, "relay quantize --help")

    def __iter__(self) -> Iterator[Batch]:
        return checked(self._items(), self.func)

    def _items(self) -> Iterator[Any]:
        if self._call is None:
            for file in self._files:
                yield load_array(str(file)) if file.suffix.lower() == ".npy" else load_params(str(file))
            return
        try:
            items = self._call()
            if not isinstance(items, Iterable):
                raise refuse(
                    f"{self.text} returns {type(items).__name__}, and not batches", "a batch is a mapping from inputs' names to arrays"
                )
            yield from items
        except RelayError:
            raise
        except Exception as problem:
            raise RelayError(raised_in(self.text, problem, "the function")) from problem

    def check(self) -> int:
        """Look at all batches, of a function at the first alone. Returns their number, 0 where it is not known.

        Raises `RelayError` (R0530) for data that do not fit.
        """
        if self._call is not None:
            next(iter(self))
            return 0
        return sum(1 for _ in self)


def _function(path: str, name: str) -> Any:
    """A function of a Python file, which is run. Raises `RelayError`."""
    check_trusted(f"--calibration {path}:{name}")
    if not Path(path).is_file():
        raise RelayError(error("R0001", f"cannot read {path}: there is no such file"))
    try:
        names = runpy.run_path(path)
    except SyntaxError as problem:
        raise RelayError(error("R0512", f"{path} is no Python: {problem.msg}, line {problem.lineno}")) from None
    except (Exception, SystemExit) as problem:
        raise RelayError(raised_in(path, problem, "the file")) from problem
    if not callable(names.get(name)):
        known = [n for n, value in names.items() if callable(value) and not n.startswith("_")]
        near = did_you_mean(name, known)
        raise RelayError(error("R0512", f"{path} has no function {name}", notes=[f"did you mean {near}?"] if near else ()))
    return names[name]


__all__ = ["Calibration"]
