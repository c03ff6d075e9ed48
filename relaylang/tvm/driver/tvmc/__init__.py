"""tvmc as Python functions: `load`, `tune`, `compile`, `run`.

Usage:

    model = tvmc.load("net.onnx")
    tvmc.tune(model, target="llvm", tuning_records="log.jsonl", trials=200)
    package = tvmc.compile(model, target="llvm", package_path="net.tar", tuning_records="log.jsonl")
    result = tvmc.run(package, device="cpu")
"""

from __future__ import annotations

from relaylang.diagnostics import RelayError
from relaylang.tvm.driver.tvmc.autotuner import tune_model
from relaylang.tvm.driver.tvmc.compiler import compile_model
from relaylang.tvm.driver.tvmc.frontends import load_model
from relaylang.tvm.driver.tvmc.model import TVMCModel, TVMCPackage, TVMCResult
from relaylang.tvm.driver.tvmc.runner import run_module

TVMCException = TVMCImportError = RelayError

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
