"""The wiring of the house: public names, second names of modules, and the providers of services.

`relaylang/__init__.py` hands these tables on, and imports a name's module at the first use of the name.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable

#: Service of `relaylang.services` -> its provider. Nothing else registers one.
SERVICES: dict[str, str] = {
    "text": "relaylang.syntax.printer:astext",
    "shown": "relaylang.syntax.shown:text",
    "brief": "relaylang.syntax.shown:brief",
    "html": "relaylang.repl.notebook:as_html",
    "show": "relaylang.repl.notebook:show",
    "operator call": "relaylang.tvm.op.namespace:builder",
    "compile": "relaylang.backends:compile_module",
    "compile for bare metal": "relaylang.backends.bare_metal:compile_bare_metal",
    "tvm script": "relaylang.tvm.script:run",
    "standard library": "relaylang.stdlib.library:import_from_std",
    "operators of a text": "relaylang.kernels.operators:from_text",
    "operator with a text": "relaylang.kernels.operators:with_text",
    "evaluate a call": "relaylang.interpreter.compute:compute",
    "artifact relaylang-cpu": "relaylang.runtime.cpu:loads",
    "artifact relaylang-ethos-u": "relaylang.backends.ethosu:loads",
    "artifact relaylang-mlf": "relaylang.backends.bare_metal.reading:loads",
    "artifact relaylang-vta": "relaylang.backends.vta:loads",
    "layers of the ethos-u": "relaylang.backends.ethosu.layers.table:pattern_table",
    "layers of vta": "relaylang.backends.vta.layers.table:pattern_table",
    "artifact relaylang-vm": "relaylang.runtime.vm.executable:loads",
}

#: Table of `relaylang.services` -> the packages whose files it lists. `relaylang.passes.PASSES` lists those of passes.
FOLDERS = {"passes": ("relaylang.passes", "relaylang.partition.passes")}

_IR = (
    "ANY Any Call Clause Constant Constructor Expr FuncType Function GlobalTypeVar GlobalVar IRModule If "
    "IncompleteType Let Match Pattern PatternConstructor PatternTuple PatternVar PatternWildcard RefCreate RefRead RefType RefWrite "
    "ScopeBuilder TensorType Tuple TupleGetItem TupleType Type TypeCall TypeData TypeVar Var const scalar_type var"
)

#: Where the functions of operators are, `relaylang.add` and the others: their names come from the operators' records.
OPERATORS = "relaylang.tvm.op"

#: Public name -> the module that defines it.
NAMES: dict[str, str] = {
    **dict.fromkeys(_IR.split(), "relaylang.ir"),
    "TupleWrapper": "relaylang.tvm.op",
    "Diagnostic": "relaylang.diagnostics",
    "RelayError": "relaylang.diagnostics",
    "ParseResult": "relaylang.syntax",
    "astext": "relaylang.syntax",
    "fromtext": "relaylang.syntax",
    "parse": "relaylang.tvm.parser",
    "parse_expr": "relaylang.syntax",
    "infer": "relaylang.typing",
    "evaluate": "relaylang.interpreter",
    "register_op_attr": "relaylang.tvm.op.attributes",
    "create_executor": "relaylang.tvm.executor",
    "build": "relaylang.tvm.build_module",
    **dict.fromkeys(("load_param_dict", "save_param_dict"), "relaylang.tvm.runtime.params"),
    "TypeKind": "relaylang.tvm.analysis",
    "bind": "relaylang.tvm.build_module",
    **dict.fromkeys(("ExprFunctor", "ExprMutator", "ExprVisitor"), "relaylang.tvm.expr_functor"),
    "Prelude": "relaylang.tvm.prelude",
    **dict.fromkeys(("load_ipython_extension", "unload_ipython_extension"), "relaylang.repl.magic"),
}

_TVM = ("analysis", "build_module", "expr_functor", "frontend", "op", "prelude", "qnn", "transform", "vm")

#: Modules that users import below `relaylang` under TVM's names, such as `relaylang.op.nn`, and where they are.
ALIASES: dict[str, str] = {
    **{f"relaylang.{name}": f"relaylang.tvm.{name}" for name in _TVM},
    **dict.fromkeys(("relaylang.dataflow_pattern", "relaylang.tvm.dataflow_pattern"), "relaylang.patterns"),
    "relaylang.tvm.nd": "relaylang.tvm.runtime.ndarray",
    "relaylang.testing.temp_op_attr": "relaylang.tvm.temp_op_attr",
}

#: Modules of functions of operators that have no file -> how the paths of their operators begin.
OPERATOR_MODULES: dict[str, str] = {
    f"relaylang.tvm.op.{name}": f"{name}." for name in ("annotation", "image", "nn", "random", "vision")
}

#: Public name -> the package it stands for.
PACKAGES: dict[str, str] = {
    **{name: f"relaylang.tvm.{name}" for name in _TVM},
    "dataflow_pattern": "relaylang.patterns",
    # TVM has the nodes in these; here they stand together.
    **dict.fromkeys(("expr", "function", "adt", "ty", "scope_builder"), "relaylang.ir"),
    **{name: f"relaylang.tvm.op.{name}" for name in ("annotation", "image", "nn", "random", "vision")},
    **{
        name: f"relaylang.{name}"
        for name in (
            "backends",
            "diagnostics",
            "frontends",
            "grammar",
            "interpreter",
            "ir",
            "ops",
            "partition",
            "passes",
            "patterns",
            "quantize",
            "runtime",
            "stdlib",
            "syntax",
            "testing",
            "tvm",
            "typing",
            "viz",
        )
    },
}


def operators() -> list[str]:
    """The functions of operators that stand at the top, too."""
    names: list[str] = importlib.import_module(f"{OPERATORS}.namespace").names("")
    return names


def is_module(name: str, folders: Iterable[str]) -> bool:
    """Whether a file or folder has the name, so that `from relaylang import NAME` imports it."""
    return any(os.path.exists(os.path.join(folder, name + end)) for folder in folders for end in ("", ".py"))
