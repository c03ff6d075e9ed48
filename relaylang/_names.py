"""The public names and where they live; `relaylang/__init__.py` imports them when they are first used."""

from __future__ import annotations

_IR = (
    "ANY Any Call Clause Constant Constructor Expr FuncType Function GlobalTypeVar GlobalVar IRModule If "
    "IncompleteType Let Match Pattern PatternConstructor PatternTuple PatternVar PatternWildcard RefCreate RefRead RefType RefWrite "
    "TensorType Tuple TupleGetItem TupleType Type TypeCall TypeData TypeVar Var const scalar_type var"
)

#: Public name -> the module that defines it.
NAMES: dict[str, str] = {
    **dict.fromkeys(_IR.split(), "relaylang.ir"),
    "Diagnostic": "relaylang.diagnostics",
    "RelayError": "relaylang.diagnostics",
    "ParseResult": "relaylang.syntax",
    "astext": "relaylang.syntax",
    "fromtext": "relaylang.syntax",
    "parse": "relaylang.api",
    "parse_expr": "relaylang.syntax",
    "infer": "relaylang.typing",
    "evaluate": "relaylang.interpreter",
    "create_executor": "relaylang.api",
    "build": "relaylang.api",
}

#: Public name -> the package it stands for.
PACKAGES: dict[str, str] = {
    name: f"relaylang.{name}"
    for name in ("backends", "diagnostics", "grammar", "interpreter", "ir", "ops", "passes", "prelude",
                 "runtime", "source", "std", "syntax", "transform", "typing")
}  # fmt: skip
