"""tvmc as Python functions: `load`, `compile`, `run`.

Usage:

    model = tvmc.load("net.onnx")
    package = tvmc.compile(model, target="llvm", package_path="net.tar")
    result = tvmc.run(package, device="cpu")
"""

from __future__ import annotations

from typing import Any, NoReturn

from relaylang.diagnostics import RelayError
from relaylang.tvm.driver.tvmc.compiler import compile_model, refused
from relaylang.tvm.driver.tvmc.frontends import load_model
from relaylang.tvm.driver.tvmc.model import TVMCModel, TVMCPackage, TVMCResult
from relaylang.tvm.driver.tvmc.runner import run_module

TVMCException = TVMCImportError = RelayError
TUNING = "the compiler picks schedules by its cost model; relay compile --emit space and --schedule FILE change them"


def tune_model(tvmc_model: TVMCModel, target: str, **options: Any) -> NoReturn:
    """Raises `RelayError` (R0609): compiled code has no tuning records."""
    raise refused("tuning", TUNING)


load, compile, run, tune = load_model, compile_model, run_module, tune_model

__all__ = [
    "TVMCException",
    "TVMCImportError",
    "TVMCModel",
    "TVMCPackage",
    "TVMCResult",
    "compile",
    "load",
    "run",
    "tune",
]
