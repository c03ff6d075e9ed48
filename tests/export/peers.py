"""Runs exported programs in the tools that they are for; a test skips where a tool is absent."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest


def onnx_outputs(model: Any, args: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs that onnxruntime computes, its optimisations off."""
    onnx = pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    onnx.checker.check_model(model, full_check=True)
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    wanted = {i.name for i in session.get_inputs()}
    feeds = {i.name: np.asarray(a) for i, a in zip(model.graph.input, args) if i.name in wanted}
    return [np.asarray(o) for o in session.run(None, feeds)]


class Iree:
    """Functions of StableHLO texts, compiled together."""

    def __init__(self, texts: Sequence[str]) -> None:
        tools = pytest.importorskip("iree.compiler.tools")
        runtime = pytest.importorskip("iree.runtime")
        bodies = [text.split("\n", 1)[1].rsplit("}", 1)[0].replace("@main(", f"@f{i}(") for i, text in enumerate(texts)]
        whole = "module @m {\n" + "".join(bodies) + "}\n"
        binary = tools.compile_str(
            whole,
            target_backends=["llvm-cpu"],
            input_type="stablehlo",
            extra_args=["--iree-llvmcpu-target-cpu=host", "--iree-input-demote-f64-to-f32=false"],
        )
        context = runtime.SystemContext(config=runtime.Config("local-sync"))
        context.add_vm_module(runtime.VmModule.copy_buffer(context.instance, binary))
        self.module = context.modules.m
        self.context = context

    def run(self, number: int, args: Sequence[np.ndarray]) -> list[np.ndarray]:
        out = self.module[f"f{number}"](*[np.array(a, order="C") for a in args])
        return [np.asarray(o) for o in (out if isinstance(out, (tuple, list)) else [out])]


class Relax:
    """Functions of Relax texts, compiled together by TVM."""

    def __init__(self, texts: Sequence[str]) -> None:
        tvm = pytest.importorskip("tvm")
        script = pytest.importorskip("tvm.script")
        relax = pytest.importorskip("tvm.relax")
        bodies = []
        for i, text in enumerate(texts):
            body = text[text.index("    @R.function") :]
            bodies.append(re.sub(r"    def main\(", f"    def f{i}(", body, count=1))
        head = "# from tvm.script import ir as I\n# from tvm.script import relax as R\n\n@I.ir_module\nclass Module:\n"
        self.tvm = tvm
        self.vm = relax.VirtualMachine(tvm.compile(script.from_source(head + "\n".join(bodies)), target="llvm"), tvm.cpu())

    def run(self, number: int, args: Sequence[np.ndarray]) -> list[np.ndarray]:
        out = self.vm[f"f{number}"](*[self.tvm.runtime.tensor(np.array(a)) for a in args])
        flat: list[np.ndarray] = []
        stack = [out]
        while stack:
            top = stack.pop()
            if hasattr(top, "numpy"):
                flat.append(top.numpy())
            else:
                stack.extend(reversed(list(top)))
        return flat
