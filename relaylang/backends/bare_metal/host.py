"""A bare-metal program as a library for this machine, linked with the user's CMSIS-NN where it calls that."""

from __future__ import annotations

import ctypes
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from relaylang.backends.aot import library
from relaylang.backends.bare_metal.cmsis_nn import HEADER, SINGLE_ROUNDING
from relaylang.backends.target import Target
from relaylang.diagnostics import RelayError, error
from relaylang.runtime.library import function_in

#: Names CMSIS-NN's folder where the target's option `-path` does not.
VARIABLE = "RELAY_CMSIS_NN"
_LIBRARY = "libcmsis-nn.a"
_HELP = [
    f'name the folder: the target "cmsis-nn -path=FOLDER", or the environment variable {VARIABLE}',
    f"it holds Include/{HEADER}, and {_LIBRARY} for this machine, built with -fPIC -D{SINGLE_ROUNDING}",
]
#: One quarter becomes 0 by one rounding, and 1 by two.
_PROBE = f"""
#include "{HEADER}"
__attribute__((visibility("default"))) int32_t relay_rounds_once(void) {{
  const int8_t one = 1;
  int8_t quarter = 1;
  arm_elementwise_mul_s8(&one, &one, 0, 0, &quarter, 0, 1 << 30, -1, -128, 127, 1);
  return quarter == 0;
}}
"""
_ROUNDS = ctypes.CFUNCTYPE(ctypes.c_int32)


def host_library(target: Target, path: str, text: str, externals: Mapping[str, bytes]) -> bytes:
    """The library of a C text and of other C files. `path` is CMSIS-NN's folder. Raises `RelayError` (R0617, R0631)."""
    if not calls_cmsis_nn(externals):
        return library(target, text, externals)
    folder = Path(path or os.environ.get(VARIABLE) or "")
    if folder == Path():
        raise RelayError(error("R0617", "the program calls CMSIS-NN, and nothing says where that is", notes=_HELP))
    headers = folder / "Include"
    libraries = sorted(folder.rglob(_LIBRARY))
    for what, there in ((f"Include/{HEADER}", (headers / HEADER).is_file()), (_LIBRARY, bool(libraries))):
        if not there:
            raise RelayError(error("R0617", f"the folder {folder} of CMSIS-NN has no {what}", notes=_HELP))
    flags = shlex.join([f"-I{headers.resolve()}", f"-D{SINGLE_ROUNDING}"])
    options = {**target.options, "cflags": f"{target.get('cflags', '')} {flags}"}
    return library(Target(target.name, options), text + _PROBE, {**externals, _LIBRARY: libraries[0].read_bytes()})


def calls_cmsis_nn(externals: Mapping[str, bytes]) -> bool:
    """Whether one of a program's C files calls CMSIS-NN."""
    return any(f'#include "{HEADER}"'.encode() in content for content in externals.values())


def check_rounding(opened: Any) -> None:
    """Raise `RelayError` (R0617) where a library's CMSIS-NN rounds twice."""
    if not function_in(opened, "relay_rounds_once", _ROUNDS)():
        raise RelayError(error("R0617", "this CMSIS-NN rounds twice, and Relay once", notes=_HELP[1:]))


__all__ = ["VARIABLE", "calls_cmsis_nn", "check_rounding", "host_library"]
