"""Writes docs/tvm.md: how scripts for TVM run, and what to use in place of missing parts of TVM."""

from __future__ import annotations

from pathlib import Path

from relaylang.tvm.notes import NOTES

PAGE = Path(__file__).resolve().parent.parent / "docs" / "tvm.md"

TEXT = """# Scripts for TVM

A script that imports `tvm` and `tvm.relay` runs unchanged, without TVM:

    relay tvm script.py --its --arguments
    python -m relaylang.tvm script.py
    relay tvm -m package.module

Or put one line in front of its imports:

    import relaylang.tvm.install

From then on `import tvm` means relaylang in this process. That also holds where a newer TVM, which has no Relay, is
installed. `pytest -p relaylang.tvm.testing.plugin` does the same for tests.

`examples/legacy/` has nineteen such scripts. They retell the calls of TVM's tutorials that need no other framework and no
GPU. Two have the spellings of TVM 0.6.

| script | topic |
|---|---|
| `byoc` | an accelerator's pattern table, and partitioning |
| `calibrate` | `relay.quantize` with a global scale, and with data |
| `conv_net` | a network of operators, compiled and timed |
| `graph_conv` | a graph convolution with a sparse matrix |
| `import_onnx` | a network from an ONNX file |
| `inner_values` | values inside a compiled program |
| `instruments` | instruments around passes |
| `micro` | C for a microcontroller, as an archive |
| `pass_infra` | passes, sequences, and a pass of one's own |
| `quantize` | fake quantisation as whole numbers |
| `quick_start` | three files of TVM 0.6, loaded again |
| `remote` | a library that another session loads |
| `rewrite` | patterns and their replacement |
| `sparse` | dense layers that become sparse |
| `tune` | a network whose schedules autotvm searches, up to a library |
| `tvmc_python` | `tvmc` as a library |
| `uma` | an accelerator of UMA with its C |
| `visualise` | `relay_viz` with nodes of one's own |
| `vm` | loops, recursion and lists |

Of TVM 0.16's own tests of Relay, 3 297 pass here unchanged (`make tvm-suite`). `tests/tvm/suite.tsv` lists the others,
with reasons. Most of these test parts of TVM that are not here: TIR, tuning's inner parts, its C++ runtime.

## Where names are

`tvm.X.Y` is the module `relaylang.tvm.X.Y`. `tvm.relay.X` is `relaylang.X`, and `relaylang.tvm.relay.X` adds what only
scripts need. A name that is not there raises an `AttributeError` or `ImportError` that says what to use instead.
Some modules that are not there, such as `tvm.relax`, can be imported. A script may need them in one branch alone.

`tvm.relay.testing` has TVM's networks, with the same texts and parameters. `tvm.topi.testing` computes operators' results
with the interpreter.

## Conventions

Nodes, types and passes follow TVM's conventions once relaylang stands in for TVM:

| expression | meaning |
|---|---|
| `print(expr)`, `str(mod)` | Relay text without the version line |
| `ty.shape[0].value`, `int(ty.shape[0])` | an extent as a number |
| `const.data.numpy()`, `.asnumpy()` | the plain array of a constant |
| `"float" in const.data.dtype` | the element type of a constant as a text |
| `InferType()(mod)["main"].params[0].type_annotation` | the type that inference finds; let variables have one, too |
| `call.args = values` | scripts read the values again; the node and its text stay as they are |
| `f.attrs.Compiler`, `f.attrs["Compiler"]` | an attribute of a function |
| `tvm.te.var("n") * 2 + 1` | a computed extent |
| `call.type_args[0].shape` | the shape of an operator's first argument |
| `tvm.ir.Op.get("nn.relu").get_attr(key)` | an operator and its attributes |
| `tvm.register_func`, `tvm.get_global_func` | Python functions under names for everybody |
| `debug_executor.create(...).debug_get_output(node)` | a value inside the compiled program, which is compiled again for it |
| `debug_datum.get_output_tensors()` | all of them, by the nodes' names and numbers |
| `lib.get_lib().imported_modules[0].get_source()` | the C text |
| `UMABackend` | an accelerator's target, passes over Relay and patterns; `relay.ext.NAME` gives its code |
| `with autotvm.apply_history_best(log):` | programs of the block take the best records; see [tuning](tuning.md) |
| `tvm.ir.save_json(mod)`, `tvm.ir.load_json(text)` | TVM 0.16's JSON, both ways; graphs of TVM since 0.6 open |
| `relay.parse(text)`, `some_pass(mod)` | a module with types, whose functions say their results' types |
| `tvm.TVMError`, `tvm.error.DiagnosticError` | `relaylang.RelayError`, with all diagnostics |

## What to use instead

| TVM | use |
|---|---|
"""


def page() -> str:
    """The whole page."""
    rows = "".join(f"| `{name}` | {instead} |\n" for name, instead in sorted(NOTES.items()))
    return TEXT + rows


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
