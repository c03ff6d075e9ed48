"""Talks to the oracle: TVM in a process of its own. `RELAY_ORACLE` names the Python that has it."""

from __future__ import annotations

import os
import pickle
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from relaylang.ops import get
from tests.shared import SHARED

ORACLE = os.environ.get("RELAY_ORACLE")


class Oracle:
    def __init__(self) -> None:
        worker = Path(__file__).parent / "oracle_worker.py"
        self.process = subprocess.Popen(
            [str(ORACLE), str(worker), str(SHARED / "oracle")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def run(self, text: str | tuple[Any, ...], inputs: Sequence[np.ndarray], constants: Mapping[str, np.ndarray]) -> Any:
        """The result of @main; a text where the oracle could not do it."""
        assert self.process.stdin is not None and self.process.stdout is not None
        pickle.dump((text, list(inputs), dict(constants)), self.process.stdin, protocol=4)
        self.process.stdin.flush()
        return pickle.load(self.process.stdout)

    def close(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def type_text(x: np.ndarray) -> str:
    shape = ", ".join(map(str, x.shape)) + ("," if x.ndim == 1 else "")
    return f"Tensor[({shape}), {x.dtype}]" if x.ndim else str(x.dtype)


def attr_text(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(attr_text, value))}]"
    return f"{value!r}f" if isinstance(value, float) else str(value)


def program(op: str, attrs: Mapping[str, Any], args: Sequence[Any]) -> str | tuple[Any, ...]:
    """`@main` that calls one operator; an argument that is a tuple of arrays is passed as a tuple. Where TVM's text
    cannot give the attributes, the parts of the call."""
    known = get(op).attrs
    if known is not None and known.in_metadata:  # type: ignore[attr-defined]
        return op, list(get(op).args), [(x.shape, str(x.dtype)) for x in args], dict(attrs)
    params: list[str] = []
    given: list[str] = []
    for arg in args:
        parts = arg if isinstance(arg, tuple) else (arg,)
        names = []
        for part in parts:
            names.append(f"%p{len(params)}")
            params.append(f"{names[-1]}: {type_text(part)}")
        given.append(f"({', '.join(names)},)" if isinstance(arg, tuple) else names[0])
    given += [f"{name}={attr_text(value)}" for name, value in attrs.items()]
    return f"def @main({', '.join(params)}) {{ {op}({', '.join(given)}) }}"
