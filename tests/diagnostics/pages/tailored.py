"""What raises the codes whose examples need what not every machine has: a file, a device, a missing tool.

Each function returns the codes that it saw, or a call of the command (`["relay", ...]`), or raises the error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.backends import compile_module
from relaylang.backends.ethosu.simulator import simulate
from relaylang.backends.ethosu.stream import Command, Stream, read_stream
from relaylang.backends.registry import BACKENDS, Backend
from relaylang.dataflow_pattern import DFPatternCallback, is_op, rewrite, wildcard
from relaylang.export import export
from relaylang.frontends.onnx import import_onnx
from relaylang.frontends.options import Options
from relaylang.interpreter import evaluate
from relaylang.runtime.trust import MADE
from relaylang.stdlib.library import add, import_from_std
from tests.frontends.onnx.models import model as onnx_model
from tests.frontends.onnx.models import node as onnx_node

Patch = pytest.MonkeyPatch
RELU = "def @main(%x: Tensor[(2), float32]) { nn.relu(%x) }"


def callback(make: Callable[[Any, Any], Any], **options: Any) -> DFPatternCallback:
    class Made(DFPatternCallback):
        def __init__(self) -> None:
            super().__init__(**options)
            self.x = wildcard()
            self.pattern = is_op("nn.relu")(self.x)

        def callback(self, pre: Any, post: Any, node_map: Any) -> Any:
            return make(post, node_map[self.x][0])

    return Made()


def relu() -> Any:
    return relay.transform.InferType()(relay.parse(RELU))


def other_list(place: Path, patch: Patch) -> Any:
    module = relay.parse("type List[A] { Other(A) }\ndef @main() { 1 }")
    return add(module, "hd")


def no_library(place: Path, patch: Patch) -> Any:
    import_from_std(relay.parse("def @main() { 1 }"), "preude.rly")


def without_kernel(place: Path, patch: Patch) -> Any:
    from relaylang.interpreter import kernels

    for name in dir(kernels):
        table = getattr(kernels, name)
        if isinstance(table, dict) and "nn.relu" in table:
            patch.delitem(table, "nn.relu")
    return evaluate(relu(), np.ones(2, np.float32))


def called_number(place: Path, patch: Patch) -> Any:
    from relaylang.interpreter.evaluate import Evaluator

    return Evaluator(relu()).apply(np.ones(2, np.float32), 1)  # type: ignore[arg-type]


def endless(place: Path, patch: Patch) -> Any:
    text = "def @f(%n: int32) -> int32 { add(@f(%n), 1) }\ndef @main() -> int32 { @f(1) }"
    (place / "endless.relay").write_text(text)
    return ["relay", "run", "endless.relay", "--memory-limit", "2M"]


def endless_loop(place: Path, patch: Patch) -> Any:
    (place / "endless_loop.relay").write_text("def @main(%n: int32) -> int32 { @main(add(%n, 1)) }")
    return ["relay", "run", "endless_loop.relay", "--input", "n=0", "--time-limit", "50ms"]


def external(place: Path, patch: Patch) -> Any:
    text = "def @g() -> float32 { 1f }\ndef @main() -> float32 { @g() }"
    module = relay.parse(text)
    g = module.get_global_var("g")
    module[g] = relay.Function([], None, relay.TensorType((), "float32"), attrs={"Compiler": "x"})
    return evaluate(module)


def unwritten(place: Path, patch: Patch) -> Any:
    from relaylang.interpreter.errors import Fault
    from relaylang.interpreter.steps import read_step
    from relaylang.interpreter.values import RefValue

    try:
        read_step(0, 1)([None, RefValue(None)])
    except Fault as fault:
        return [fault.code]


def wrong_pass(place: Path, patch: Patch) -> Any:
    (place / "wrong_pass.py").write_text(
        "import relaylang as relay\n\n@relay.transform.function_pass(opt_level=0, name='Wrong')\n"
        "def Wrong(function, mod, ctx):\n    return relay.Function([], relay.var('free'))\n"
    )
    return ["relay", "opt", "examples/mlp.relay", "--load", "wrong_pass.py", "--passes", "Wrong", "--verify"]


def changing_pass(place: Path, patch: Patch) -> Any:
    (place / "changing_pass.py").write_text(
        "import relaylang as relay\n\n@relay.transform.module_pass(opt_level=0, name='Changing')\n"
        "def Changing(mod, ctx):\n"
        "    return relay.parse(relay.astext(mod).replace('nn.relu', 'negative'))\n"
    )
    call = ["relay", "opt", "examples/mlp.relay", "--load", "changing_pass.py", "--passes", "Changing", "--bisect"]
    return [*call, "--random-params", "0"]


def free_variable(place: Path, patch: Patch) -> Any:
    from relaylang.passes.analysis import well_formed_problems

    x = relay.var("x")
    twice = relay.Let(x, relay.const(1), relay.Let(x, relay.const(2), x))
    return [d.code for d in well_formed_problems(relay.Function([], twice))]


def no_expression(place: Path, patch: Patch) -> Any:
    from relaylang.passes.analysis import extract_intermdeiate_expr

    extract_intermdeiate_expr(relu(), 99)


def changed_type(place: Path, patch: Patch) -> Any:
    from relaylang.dataflow_pattern import callback_pass

    def make(post: Any, x: Any) -> Any:
        return relay.const(np.zeros(3, np.float32))

    return callback_pass(callback(make))(relu())


def no_end(place: Path, patch: Patch) -> Any:
    return rewrite(callback(lambda post, x: relay.Call(post.op, [relay.Call(post.op, [x])])), relu()["main"])


def no_match(place: Path, patch: Patch) -> Any:
    from relaylang.patterns.mismatch import explain_match

    return [explain_match(is_op("nn.conv2d")(wildcard(), wildcard()), relu()["main"].body).diagnostic().code]


def matches(place: Path, patch: Patch) -> Any:
    return ["relay", "match", "nn.relu(_)", "examples/mlp.relay"]


def no_tools(place: Path, patch: Patch) -> Any:
    for name in ["ethosu", "ethosu.regor", *(m for m in sys.modules if m.startswith("ethosu."))]:
        patch.setitem(sys.modules, name, None)
    call = ["relay", "compile", "examples/quantized.relay", "--target", "ethos-u, c", "--random-params", "0"]
    return [*call, "-o", "net.tar"]


def deep_result(place: Path, patch: Patch) -> Any:
    from relaylang.backends import hosted

    pytest.importorskip("ethosu.regor")
    patch.setattr(hosted, "_MAX_RESULT_DEPTH", -1)
    call = ["relay", "compile", "examples/quantized.relay", "--target", "ethos-u, c", "--random-params", "0"]
    return [*call, "-o", "net.tar"]


def refused_region(place: Path, patch: Patch) -> Any:
    pytest.importorskip("tosa_reference_model")
    from relaylang.backends.ethosu.reference import run_tosa

    return run_tosa(b"no flatbuffer", [])


def nothing_for_it(place: Path, patch: Patch) -> Any:
    pytest.importorskip("ethosu.regor")
    return ["relay", "compile", "examples/mlp.relay", "--target", "ethos-u", "--random-params", "0", "-o", "net.tar"]


def c_compiler_fails(place: Path, patch: Patch) -> Any:
    (place / "cc").write_text('#!/bin/sh\ncase "$*" in *--version*) echo cc 1.0; exit 0;; esac\necho no >&2\nexit 1\n')
    (place / "cc").chmod(0o755)
    call = ["relay", "compile", "examples/mlp.relay", "--random-params", "0", "--cc", str(place / "cc")]
    return [*call, "-o", "net.so"]


def without_code(place: Path, patch: Patch) -> Any:
    from relaylang.backends.cpu import lower

    for table in (lower.ANCHORS, lower.RECIPES):
        patch.delitem(table, "nn.relu", raising=False)
    return compile_module(relu(), "c")


def strange_dtype(place: Path, patch: Patch) -> Any:
    (place / "strange_dtype.relay").write_text("def @main(%x: Tensor[(2), custom[posit]32]) { copy(%x) }")
    return ["relay", "compile", "strange_dtype.relay", "--emit", "c"]


def no_artifact(place: Path, patch: Patch) -> Any:
    from relaylang.runtime.artifact import load

    return load(place / "weights.bin")


def no_room(place: Path, patch: Patch) -> Any:
    patch.setenv("RELAYLANG_CACHE", str(place / "cache"))
    patch.setattr("tempfile.tempdir", str(place / "absent"))
    return compile_module(relu(), "c")


def failing_test(place: Path, patch: Patch) -> Any:
    (place / "wrong.relay").write_text("// RUN: relay print %s --no-types\n// CHECK: subtract\nadd(1, 2)\n")
    return ["relay", "test", "wrong.relay"]


def empty_test(place: Path, patch: Patch) -> Any:
    (place / "empty.relay").write_text("// RUN: relay print %s --no-types\nadd(1, 2)\n")
    return ["relay", "test", "empty.relay"]


def wrong_directive(place: Path, patch: Patch) -> Any:
    (place / "wrong.relay").write_text("// RUN: rm -rf %s\n// CHECK: add\nadd(1, 2)\n")
    return ["relay", "test", "wrong.relay"]


def code_of_a_file(place: Path, patch: Patch) -> Any:
    patch.setenv(MADE, str(place / "made"))
    return ["relay", "opt", "known_extent.relay", "--load", "my_passes.py", "--passes", "Nothing"]


def no_filecheck(place: Path, patch: Patch) -> Any:
    for name in ["filecheck", *(m for m in sys.modules if m.startswith("filecheck."))]:
        patch.setitem(sys.modules, name, None)
    (place / "fine.relay").write_text("// RUN: relay print %s --no-types\n// CHECK: add\nadd(1, 2)\n")
    return ["relay", "test", "fine.relay"]


def wrong_settings(place: Path, patch: Patch) -> Any:
    from relaylang.repl import config

    (place / "config").write_text("[repl]\nno-such-setting = yes\n")
    patch.setattr(config, "config_file", lambda: place / "config")
    return [d.code for d in config.settings().said]


def no_history(place: Path, patch: Patch) -> Any:
    from relaylang.repl import config

    (place / "state").write_text("a file")
    patch.setenv("XDG_STATE_HOME", str(place / "state"))
    said = config.history()[1]
    return [said.code] if said is not None else []


def large_constants(place: Path, patch: Patch) -> Any:
    (place / "large.relay").write_text(relay.astext(relay.IRModule.from_expr(relay.const(np.zeros(300_000, "float32")))))
    return ["relay", "print", str(place / "large.relay"), "-o", str(place / "apart.relay")]


def no_picture(place: Path, patch: Patch) -> Any:
    patch.setenv("PATH", str(place))
    patch.setitem(sys.modules, "resvg_py", None)
    return ["relay", "viz", "examples/mlp.relay", "-o", "net.png"]


def ours(place: Path, patch: Patch) -> Any:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    patch.setattr("relaylang.cli.program.read", broken)
    return ["relay", "check", "examples/mlp.relay"]


def full(place: Path, patch: Patch) -> Any:
    def broken(*_: object, **__: object) -> None:
        raise MemoryError

    patch.setattr("relaylang.cli.program.read", broken)
    return ["relay", "check", "examples/mlp.relay"]


def no_program(place: Path, patch: Patch) -> Any:
    made = Backend("", "makes nothing", {}, lambda *_: None, "a-package")
    patch.setitem(BACKENDS, "nothing", made)
    return compile_module(relu(), "nothing")


def imported(data: bytes, **options: Any) -> Any:
    pytest.importorskip("onnx")
    return import_onnx(data, Options(**options))


def unconverted(place: Path, patch: Patch) -> Any:
    return imported(onnx_model([onnx_node("Foo", ["x"])], {"x": (2, 3)}))


def damaged(place: Path, patch: Patch) -> Any:
    return imported(b"no model")


def no_onnx(place: Path, patch: Patch) -> Any:
    patch.setitem(sys.modules, "onnx", None)
    return import_onnx(b"")


def newer(place: Path, patch: Patch) -> Any:
    return imported(onnx_model([onnx_node("Relu", ["x"])], {"x": (2, 3)}, opset=99))


def other_input(place: Path, patch: Patch) -> Any:
    return imported(onnx_model([onnx_node("Relu", ["x"])], {"x": (2, 3)}), shapes={"z": (2, 3)})


def operands_missing(place: Path, patch: Patch) -> Any:
    return imported(onnx_model([onnx_node("Reshape", ["x"])], {"x": (2, 3)}))


def beyond_the_budget(place: Path, patch: Patch) -> Any:
    layers = [onnx_node("Concat", ["w", "w"], ["c"], axis=0), onnx_node("Add", ["x", "c"])]
    return imported(onnx_model(layers, {"x": (2,)}, weights={"w": np.ones(1 << 10, "float32")}), bytes=-(1 << 20))


def unexported(place: Path, patch: Patch) -> Any:
    pytest.importorskip("onnx")
    text = "def @main(%k: Tensor[(10), uint64]) { random.threefry_split(%k) }"
    return export(relay.transform.InferType()(relay.parse(text)), "onnx")


def half_a_stream(place: Path, patch: Patch) -> Any:
    return read_stream(b"COP1", "net.npu.bin")


def stream_without_end(place: Path, patch: Patch) -> Any:
    return simulate(Stream("ethos-u55", 128, 24, (Command(32, "OP_IRQ", 0, None),)), {}, {})


TAILORED: dict[str, Callable[[Path, Patch], Any]] = {
    "R0016": beyond_the_budget,
    "R0220": other_list,
    "R0221": no_library,
    "R0406": without_kernel,
    "R0407": called_number,
    "R0408": endless,
    "R0409": external,
    "R0411": unwritten,
    "R0413": endless_loop,
    "R0504": wrong_pass,
    "R0506": changing_pass,
    "R0509": free_variable,
    "R0510": no_expression,
    "R0522": changed_type,
    "R0523": no_end,
    "R0524": no_match,
    "R0526": matches,
    "R0604": no_program,
    "R0611": no_tools,
    "R0612": deep_result,
    "R0613": refused_region,
    "R0614": nothing_for_it,
    "R0615": half_a_stream,
    "R0616": stream_without_end,
    "R0620": nothing_for_it,
    "R0631": c_compiler_fails,
    "R0633": without_code,
    "R0635": strange_dtype,
    "R0641": no_artifact,
    "R0642": no_room,
    "R0709": large_constants,
    "R0727": wrong_settings,
    "R0728": no_history,
    "R0760": failing_test,
    "R0761": empty_test,
    "R0762": wrong_directive,
    "R0763": no_filecheck,
    "R0764": code_of_a_file,
    "R0770": no_picture,
    "R0801": unconverted,
    "R0802": damaged,
    "R0803": no_onnx,
    "R0804": other_input,
    "R0805": operands_missing,
    "R0806": unexported,
    "R0807": newer,
    "R0900": ours,
    "R0901": full,
}
