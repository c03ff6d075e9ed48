"""The public names and where they live; `relaylang/__init__.py` imports them when they are first used."""

from __future__ import annotations

#: Service of `relaylang.services` -> its provider. Nothing else registers one.
SERVICES: dict[str, str] = {
    "text": "relaylang.syntax.printer:astext",
    "operator call": "relaylang.tvm.op.namespace:builder",
    "compile": "relaylang.backends:compile_module",
    "standard library": "relaylang.stdlib.library:import_from_std",
    "evaluate a call": "relaylang.interpreter.compute:compute",
    "artifact relaylang-cpu": "relaylang.runtime.cpu:loads",
    "artifact relaylang-ethos-u": "relaylang.backends.ethosu:loads",
}

#: Table of `relaylang.services` -> the packages whose files it lists. `relaylang.passes.PASSES` lists those of passes.
FOLDERS = {"passes": ("relaylang.passes", "relaylang.partition.passes")}

_IR = (
    "ANY Any Call Clause Constant Constructor Expr FuncType Function GlobalTypeVar GlobalVar IRModule If "
    "IncompleteType Let Match Pattern PatternConstructor PatternTuple PatternVar PatternWildcard RefCreate RefRead RefType RefWrite "
    "ScopeBuilder TensorType Tuple TupleGetItem TupleType Type TypeCall TypeData TypeVar Var const scalar_type var"
)

#: The functions of `relaylang.tvm.op` that stand at the top too (tests/tvm/op holds the list against the module).
_OPERATORS = (
    "abs acos acosh add adv_index all any arange argmax argmin argsort argwhere asin asinh atan atanh bitwise_and "
    "bitwise_not bitwise_or bitwise_xor broadcast_to broadcast_to_like cast cast_like ceil clip collapse_sum_like "
    "collapse_sum_to concatenate copy cos cosh cumprod cumsum device_copy dft divide einsum equal erf exp expand_dims "
    "fixed_point_multiply floor floor_divide floor_mod full full_like gather gather_nd greater greater_equal "
    "invert_permutation isfinite isinf isnan layout_transform left_shift less less_equal log log10 log2 logical_and "
    "logical_not logical_or logical_xor logsumexp matrix_set_diag max maximum mean mean_std mean_variance meshgrid "
    "min minimum mod multiply ndarray_size negative not_equal one_hot ones ones_like power prod reinterpret repeat "
    "reshape reshape_like reverse reverse_reshape reverse_sequence right_shift round rsqrt scatter_elements "
    "scatter_nd searchsorted sequence_mask shape_of sigmoid sign sin sinh slice_like sliding_window sort "
    "sparse_fill_empty_rows sparse_reshape sparse_to_dense split sqrt squeeze stack std stft strided_set "
    "strided_slice subtract sum take tan tanh tile topk transpose trilu trunc trunc_divide trunc_mod unique "
    "unravel_index variance where zeros zeros_like"
)

#: Public name -> the module that defines it.
NAMES: dict[str, str] = {
    **dict.fromkeys(_IR.split(), "relaylang.ir"),
    **dict.fromkeys(_OPERATORS.split(), "relaylang.tvm.op"),
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
    "TypeKind": "relaylang.tvm.analysis",
    "bind": "relaylang.tvm.build_module",
    **dict.fromkeys(("ExprFunctor", "ExprMutator", "ExprVisitor"), "relaylang.tvm.expr_functor"),
    "Prelude": "relaylang.stdlib",
}

_TVM = ("analysis", "build_module", "dataflow_pattern", "expr_functor", "op", "qnn", "transform")

#: Modules that users import below `relaylang` under TVM's names, such as `relaylang.op.nn`, and where they are.
ALIASES: dict[str, str] = {
    **{f"relaylang.{name}": f"relaylang.tvm.{name}" for name in _TVM},
    "relaylang.prelude": "relaylang.stdlib",
    "relaylang.testing.temp_op_attr": "relaylang.tvm.temp_op_attr",
}

#: Public name -> the package it stands for.
PACKAGES: dict[str, str] = {
    **{name: f"relaylang.tvm.{name}" for name in _TVM},
    "prelude": "relaylang.stdlib",
    # TVM has the nodes in these; here they stand together.
    **dict.fromkeys(("expr", "function", "adt", "ty", "scope_builder"), "relaylang.ir"),
    **{name: f"relaylang.tvm.op.{name}" for name in ("annotation", "image", "nn", "random", "vision")},
    **{
        name: f"relaylang.{name}"
        for name in ("backends", "diagnostics", "grammar", "interpreter", "ir", "ops", "partition", "passes", "patterns", "runtime",
                     "stdlib", "syntax", "testing", "tvm", "typing", "viz")
    },
}  # fmt: skip
