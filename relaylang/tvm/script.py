"""Runs a script that was written for TVM: `relay tvm script.py ARGS` and `python -m relaylang.tvm script.py ARGS`."""

from __future__ import annotations

import importlib
import os
import runpy
import sys
import traceback
from collections.abc import Sequence

from relaylang.diagnostics import RelayError, error
from relaylang.runtime.trust import check_trusted


def run(argv: Sequence[str], module: bool = False) -> int:
    """Run the script `argv[0]`, or the module of this name, with `import tvm` as relaylang, as Python does.

    Returns the exit status: the script's own, or 1 where it raised, with the traceback on stderr.
    Raises `RelayError` for a script that is not there.
    """
    rest = list(argv)
    check_trusted(f"relay tvm {rest[0]}")
    if not module and not os.path.exists(rest[0]):
        raise RelayError(error("R0704", f"there is no script {rest[0]}"))
    importlib.import_module("relaylang.tvm.install")
    before = sys.argv, list(sys.path)
    sys.argv = rest
    sys.path.insert(0, os.getcwd() if module else os.path.dirname(os.path.abspath(rest[0])))
    try:
        if module:
            runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(rest[0], run_name="__main__")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        raise
    except BaseException as problem:
        _report(problem)
        return 1
    finally:
        sys.argv, sys.path[:] = before
    return 0


def _report(problem: BaseException) -> None:
    """The traceback from the script's first line on."""
    place = problem.__traceback__
    ours = {__file__, runpy.__file__, "<frozen runpy>"}
    while place is not None and place.tb_frame.f_code.co_filename in ours:
        place = place.tb_next
    traceback.print_exception(type(problem), problem, place)
