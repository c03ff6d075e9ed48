"""Passes under TVM's names: each is called for a pass, and the pass with a module.

    mod = Sequential([SimplifyInference(), FoldConstant(), FuseOps()])(mod)

`PASSES` lists them by name; `parse_passes("FoldConstant,FuseOps(fuse_opt_level=2)")` makes passes of a text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.interpreter import KERNELS, KernelError
from relaylang.interpreter.kernels.added import added_kernel
from relaylang.ir import Call, Expr, Function, GlobalVar, IRModule, Type
from relaylang.ops.record import Op
from relaylang.partition.functions import (
    inline_compiler_functions,
    mark_compiler_functions_as_extern,
    outline_compiler_functions,
)
from relaylang.partition.lift import partition_graph
from relaylang.partition.merge import annotate_target, merge_compiler_regions, merge_composite
from relaylang.partition.tables import get_pattern_table
from relaylang.passes.context import PassContext, PassInfo, PassInstrument
from relaylang.passes.devices.plan import plan_devices
from relaylang.passes.devices.virtual_device import CompilationConfig, VirtualDevice, make_compilation_config
from relaylang.passes.functions.defunctionalization import defunctionalize, defunctionalize_function
from relaylang.passes.functions.inline import defuse_ops, inline
from relaylang.passes.functions.lifting import eta_expand, lambda_lift
from relaylang.passes.functions.partial_evaluate import partial_evaluate
from relaylang.passes.fusion.combine_parallel import (
    combine_parallel_batch_matmul,
    combine_parallel_conv2d,
    combine_parallel_dense,
)
from relaylang.passes.fusion.fuse_ops import fuse_ops
from relaylang.passes.fusion.split_args import annotate_spans, split_args
from relaylang.passes.gradient.first_order_gradient import first_order_gradient
from relaylang.passes.gradient.first_order_gradient import gradient as _first_order
from relaylang.passes.gradient.higher_order_gradient import gradient as _higher_order
from relaylang.passes.gradient.lazy_gradient_init import lazy_gradient_init
from relaylang.passes.instruments import (
    PassTimingInstrument,
    PrintAfterAll,
    PrintBeforeAll,
    PrintChanged,
    PrintIRAfter,
    PrintIRBefore,
    Verify,
    pass_instrument,
)
from relaylang.passes.layout.alter_op_layout import alter_op_layout
from relaylang.passes.layout.convert_layout import convert_layout
from relaylang.passes.layout.registry import (
    LayoutConfig,
    TempOpAttr,
    register_alter_op_layout,
    register_convert_op_layout,
    register_infer_correct_layout,
)
from relaylang.passes.manager import BuiltinPass, FunctionPass, ModulePass, Pass, Sequential, function_pass, module_pass
from relaylang.passes.normal_forms.to_anf import to_anf
from relaylang.passes.normal_forms.to_bbnf import to_bbnf
from relaylang.passes.normal_forms.to_cps import function_to_cps, un_cps, un_cps_module
from relaylang.passes.normal_forms.to_cps import to_cps as _to_cps
from relaylang.passes.normal_forms.to_gnf import to_gnf
from relaylang.passes.precision.mixed_precision import to_mixed_precision
from relaylang.passes.quantise.fake_quantization import fake_quantization_to_integer
from relaylang.passes.quantise.fake_quantization_own import (
    TensorAffineType,
    TupleAffineType,
    register_fake_quantization_to_integer,
    register_optional_fake_quantization_to_integer,
)
from relaylang.passes.quantise.legalize import legalize, register_legalize
from relaylang.passes.quantise.qnn import canonicalize_qnn
from relaylang.passes.simplify.canonicalize import canonicalize_cast, canonicalize_ops, div_to_mul, fast_math
from relaylang.passes.simplify.common_subexpr import eliminate_common_subexpr
from relaylang.passes.simplify.convolutions import flatten_atrous_conv, fold_explicit_padding
from relaylang.passes.simplify.dead_code import eliminate_dead_code, remove_unused_functions
from relaylang.passes.simplify.dynamic_to_static import dynamic_to_static
from relaylang.passes.simplify.fold_constant import fold_constant, fold_expr
from relaylang.passes.simplify.fold_scale_axis import backward_fold_scale_axis, fold_scale_axis, forward_fold_scale_axis
from relaylang.passes.simplify.simplify_expr import simplify_expr
from relaylang.passes.simplify.simplify_inference import simplify_inference
from relaylang.passes.spec import parse_passes as _parse_passes
from relaylang.rules.layout.rule import InferCorrectLayoutOutput
from relaylang.rules.qnn_legalize import table_rules
from relaylang.stdlib.library import add
from relaylang.typing import check, type_of


def InferType() -> Pass:
    """The types of every node, found in place. Raises `RelayError`."""

    def infer_type(mod: IRModule) -> IRModule:
        check(mod)
        return mod

    return BuiltinPass("InferType", infer_type, typed=False)


def ToANormalForm() -> Pass:
    """Every value bound by a let, where it is computed."""
    return BuiltinPass("ToANormalForm", to_anf, 1)


def ToANormalFormExpr(e: Expr) -> Expr:
    """An expression with every value bound by a let, where it is computed."""
    return to_anf(e)


def InferTypeLocal(expr: Expr) -> Type:
    """The type of an expression, found in place with those of what it is made of. Raises `RelayError`."""
    return type_of(expr)


def ToGraphNormalForm() -> Pass:
    """Lets dissolved into shared nodes, but for recursion and effects."""
    return BuiltinPass("ToGraphNormalForm", to_gnf, 1)


def ToBasicBlockNormalForm() -> Pass:
    """What several blocks need bound by a let in front of them."""
    return BuiltinPass("ToBasicBlockNormalForm", to_bbnf, 1)


def SimplifyInference() -> Pass:
    """Batch normalisation, dropout and the like as the arithmetic that they are when a network only answers."""
    return BuiltinPass("SimplifyInference", simplify_inference, 0)


def FuseOps(fuse_opt_level: int = -1) -> Pass:
    """Group operators into primitive functions, each one kernel.

    Level 0 gives each operator a function of its own; all levels above are one and the same. -1 takes the context's
    `opt_level`. The context's `relay.FuseOps.max_depth` (256) limits the size of a group; with `relay.FuseOps.link_params`
    constants stay inside the functions.
    """

    def run(mod: IRModule) -> IRModule:
        ctx = PassContext.current()
        level = ctx.opt_level if fuse_opt_level == -1 else fuse_opt_level
        fused: IRModule = fuse_ops(
            mod,
            max_depth=ctx.config.get("relay.FuseOps.max_depth", 256),
            merge=level > 0,
            link_params=bool(ctx.config.get("relay.FuseOps.link_params", False)),
        )
        return fused

    return BuiltinPass("FuseOps", run, 0)


def compute(call: Call, values: list[Any]) -> Any:
    """What a call of an operator computes on constants; None where there is no kernel or the kernel refuses."""
    if not isinstance(call.op, Op):
        return None
    kernel = KERNELS.get(call.op.name) or added_kernel(call.op.name, call.checked_type)
    if kernel is None:
        return None
    try:
        with np.errstate(all="ignore"):
            return kernel(call.attrs, *values)
    except (KernelError, RelayError, ArithmeticError, ValueError, TypeError, IndexError, MemoryError):
        return None


def FoldConstant(fold_qnn: bool = False) -> Pass:
    """What can be computed now is a constant. `fold_qnn`: also operators of the qnn dialect."""
    return BuiltinPass("FoldConstant", lambda mod: fold_constant(mod, compute, fold_qnn), 2)


def FoldConstantExpr(expr: Expr, mod: IRModule | None = None, fold_qnn: bool = False) -> Expr:
    """An expression with constants folded. Raises `RelayError` where it is not well-typed."""
    check(expr, module=mod, fragment=True)
    return fold_expr(expr, compute, fold_qnn)


def EliminateCommonSubexpr(fskip: Callable[[Expr], bool] | None = None) -> Pass:
    """Calls of the same operator on the same operands are one node; `fskip` says which to leave alone."""
    return BuiltinPass("EliminateCommonSubexpr", lambda mod: eliminate_common_subexpr(mod, fskip), 3)


def DeadCodeElimination(inline_once: bool = False, ignore_impurity: bool = False) -> Pass:
    """Lets whose variables nothing needs are dropped; with `inline_once`, variables that stand once are replaced."""
    return BuiltinPass(
        "DeadCodeElimination", lambda mod: eliminate_dead_code(mod, inline_once, ignore_impurity), 1
    )


def Inline() -> Pass:
    """Calls of functions marked `Inline` become their bodies."""
    return BuiltinPass("Inline", inline, 1)


def RemoveUnusedFunctions(entry_functions: list[str] | None = None) -> Pass:
    """Functions that the entries (@main) never call are dropped."""
    return BuiltinPass("RemoveUnusedFunctions", lambda mod: remove_unused_functions(mod, entry_functions), 1)


def SimplifyExpr() -> Pass:
    """Smaller expressions for the same values: reshapes, transposes, casts, clips, neutral elements, constants."""
    return BuiltinPass("SimplifyExpr", simplify_expr, 0)


def CanonicalizeOps() -> Pass:
    """nn.bias_add as add."""
    return BuiltinPass("CanonicalizeOps", canonicalize_ops, 3)


def CanonicalizeCast() -> Pass:
    """A widening cast that several operators use is made for each of them, to be fused with it."""
    return BuiltinPass("CanonicalizeCast", canonicalize_cast, 3)


def DefuseOps() -> Pass:
    """The inverse of FuseOps."""
    return BuiltinPass("DefuseOps", defuse_ops, 3)


def EtaExpand(expand_constructor: bool = False, expand_global_var: bool = False) -> Pass:
    """Constructors and global functions that are used as values get functions around them."""
    return BuiltinPass("EtaExpand", lambda mod: eta_expand(mod, expand_constructor, expand_global_var), 1)


def LambdaLift() -> Pass:
    """Functions inside functions become functions of the module."""
    return BuiltinPass("LambdaLift", lambda_lift, 1)


def FastMath() -> Pass:
    """exp, tanh, erf and softmax as their quick approximations."""
    return BuiltinPass("FastMath", fast_math, 4)


def DivToMul() -> Pass:
    """Division by a constant as the product with its reciprocal."""
    return BuiltinPass("DivToMul", div_to_mul, 0)


def FoldExplicitPadding() -> Pass:
    """nn.pad in front of a convolution or pool becomes its padding."""
    return BuiltinPass("FoldExplicitPadding", fold_explicit_padding, 0)


def FlattenAtrousConv() -> Pass:
    """A convolution between space_to_batch_nd and batch_to_space_nd becomes one dilated convolution."""
    return BuiltinPass("FlattenAtrousConv", flatten_atrous_conv, 0)


def DynamicToStatic() -> Pass:
    """Operators that take shapes as operands become those that have them as attributes, where they are known."""
    return BuiltinPass("DynamicToStatic", lambda mod: dynamic_to_static(mod, compute), 2, typed=False)


def PlanDevices(config: Any = "llvm") -> Pass:
    """A device for every value: `virtual_device` of parameters and functions, and copies where values change their device.

    `config` is what `make_compilation_config` gives, or targets as it takes them: `PlanDevices(["llvm", "cuda"])`; by default one CPU.
    """

    def run(mod: IRModule) -> IRModule:
        known = isinstance(config, CompilationConfig)
        return plan_devices(mod, config if known else make_compilation_config(PassContext.current(), config))

    return BuiltinPass("PlanDevices", run, 0)


def SplitArgs(max_function_args: int) -> Pass:
    """Concatenations of more operands than a kernel may have are made in several steps."""
    return BuiltinPass("SplitArgs", lambda mod: split_args(mod, max_function_args), 1)


def AnnotateSpans() -> Pass:
    """Each node's span is its place in the program's own text."""
    return BuiltinPass("AnnotateSpans", annotate_spans, 0)


def FoldScaleAxis() -> Pass:
    """Factors of channels behind and in front of convolutions and matrix products move into their weights, which are
    computed where they are constants."""
    return BuiltinPass("FoldScaleAxis", lambda mod: _folded(mod, fold_scale_axis(mod)), 3)


def _folded(old: IRModule, new: IRModule) -> IRModule:
    return fold_constant(new, compute) if new is not old else new


def BackwardFoldScaleAxis() -> Pass:
    """Factors behind convolutions and matrix products move into their weights."""
    return BuiltinPass("BackwardFoldScaleAxis", backward_fold_scale_axis, 3)


def ForwardFoldScaleAxis() -> Pass:
    """Factors in front of convolutions and matrix products move into their weights."""
    return BuiltinPass("ForwardFoldScaleAxis", forward_fold_scale_axis, 3)


def CombineParallelConv2D(min_num_branches: int = 3) -> Pass:
    """Convolutions of one input with kernels of one size become one."""
    return BuiltinPass("CombineParallelConv2d", lambda mod: combine_parallel_conv2d(mod, min_num_branches), 4)


def CombineParallelDense(min_num_branches: int = 3, to_batch: bool = True) -> Pass:
    """nn.dense calls of one input become one batch_matmul, or (`to_batch=False`) one wider nn.dense."""
    return BuiltinPass("CombineParallelDense", lambda mod: combine_parallel_dense(mod, min_num_branches, to_batch), 4)


def CombineParallelBatchMatmul(min_num_branches: int = 3) -> Pass:
    """nn.batch_matmul calls of one left side become one."""
    return BuiltinPass(
        "CombineParallelBatchMatmul", lambda mod: combine_parallel_batch_matmul(mod, min_num_branches), 4
    )


def QnnCanonicalizeOps() -> Pass:
    """Operators of the qnn dialect as the plain integer operators that they stand for (TVM: qnn.transform)."""
    return BuiltinPass("qnn.CanonicalizeOps", lambda mod: canonicalize_qnn(mod, compute), 1)


def FakeQuantizationToInteger(
    hard_fail: bool = False, use_qat: bool = False, optional_qnn_ops: list[str] | None = None
) -> Pass:
    """Float operators between qnn.dequantize and qnn.quantize become integer ones.

    `hard_fail`: what has no integer form is an error (R0516), else it stays in floats. `use_qat`: also what no quantize
    follows. `optional_qnn_ops`: operators that are to become integer ones only if named (nn.softmax).
    """
    optional = list(optional_qnn_ops or ())
    return BuiltinPass(
        "FakeQuantizationToInteger",
        lambda mod: fake_quantization_to_integer(mod, hard_fail, use_qat, optional, FoldConstantExpr),
        0,
    )


def ToMixedPrecision(mixed_precision_type: str = "float16", missing_op_mode: int = 1) -> Pass:
    """Products in 16 bits, what would lose too much in 32. The context's
    `relay.ToMixedPrecision.keep_orig_output_dtype` keeps the types of results."""

    def run(mod: IRModule) -> IRModule:
        keep = bool(PassContext.current().config.get("relay.ToMixedPrecision.keep_orig_output_dtype", False))
        return to_mixed_precision(mod, mixed_precision_type, missing_op_mode, keep)

    return BuiltinPass("ToMixedPrecision", run, 0)


def AlterOpLayout() -> Pass:
    """Operators in the layouts that `register_alter_op_layout` gives them, and their neighbours with them; without it,
    2-D convolutions with their channels in blocks."""
    return BuiltinPass("AlterOpLayout", alter_op_layout, 3)


def ConvertLayout(desired_layouts: dict[str, list[str]]) -> Pass:
    """Operators in other layouts, their neighbours with them: {"nn.conv2d": ["NHWC", "default"]}."""
    return BuiltinPass("ConvertLayout", lambda mod: convert_layout(mod, desired_layouts), 3)


def FirstOrderGradient() -> Pass:
    """Every function returns its result and the gradients of its parameters: `(result, (gradient, ...))`."""
    return BuiltinPass("FirstOrderGradient", first_order_gradient, 0)


def gradient(expr: Function | GlobalVar, mod: IRModule | None = None, mode: str = "higher_order") -> Function:
    """A function of the same parameters that returns `(result, (gradient, ...))`.

    The mode "first_order" takes data flow and gives it back; "higher_order" also goes through branches, references,
    functions and data, and what it gives has gradients again. The functions that the expression calls are then added to
    `mod` as `<name>_grad`. A global variable stands for its function in `mod`. Raises `RelayError` (R0511) for what has
    no gradient.
    """
    if mode not in ("first_order", "higher_order"):
        raise RelayError(error("R0501", f"gradient has the modes first_order and higher_order, not {mode}"))
    if isinstance(expr, GlobalVar):
        if mod is None or expr not in mod:
            raise RelayError(error("R0501", f"the module has no function @{expr.name_hint}", expr.span))
        return gradient(mod.functions[expr], mod, mode)
    return _first_order(expr, mod) if mode == "first_order" else _higher_order(expr, mod)


@overload
def Defunctionalization() -> Pass: ...
@overload
def Defunctionalization(func: Function, mod: IRModule) -> Function: ...
def Defunctionalization(func: Function | None = None, mod: IRModule | None = None) -> Pass | Function:
    """Functions as values become data, and calling one a function that looks at it.

    With a function and its module, as TVM has it, the function without function values; the types and functions that it
    needs are added to the module.
    """
    if func is None or mod is None:
        return _defunctionalization()
    return defunctionalize_function(func, mod)


def _defunctionalization() -> Pass:
    """Functions as values become data, and calling one a function that looks at it."""
    return BuiltinPass("Defunctionalization", defunctionalize, 1)


def PartialEvaluate() -> Pass:
    """What is known of a program is done now: calls unfolded, branches decided, references followed."""
    return BuiltinPass("PartialEvaluate", lambda mod: partial_evaluate(mod, compute), 1)


def LazyGradientInit() -> Pass:
    """Tensors of zeros and ones are made when they are needed; sums and products with them often are not."""
    return BuiltinPass("LazyGradientInit", lambda mod: lazy_gradient_init(mod, add), 1)


def ToCPS() -> Pass:
    """Continuation passing style: every function takes what is to be done with its result, and calls it."""
    return BuiltinPass("ToCPS", _to_cps, 1)


def UnCPS() -> Pass:
    """Functions in continuation passing style, but for those that others call, get the plain form back."""
    return BuiltinPass("UnCPS", un_cps_module, 1)


def to_cps(func: Function, mod: IRModule | None = None) -> Function:
    """One function in continuation passing style; what it calls is added to `mod` in that form (`<name>_cps`)."""
    return function_to_cps(func, mod)


def Legalize(legalize_map_attr_name: str = "FTVMLegalize") -> Pass:
    """Operators that a target does not have become others, by the rules of `register_legalize`.

    The map "FTVMQnnLegalize" also makes tables of the functions of the qnn dialect; "FTVMQnnCanonicalize" is
    `QnnCanonicalizeOps`.
    """
    if legalize_map_attr_name == "FTVMQnnCanonicalize":
        return QnnCanonicalizeOps()
    more = table_rules(compute) if legalize_map_attr_name == "FTVMQnnLegalize" else {}
    return BuiltinPass("Legalize", lambda mod: legalize(mod, legalize_map_attr_name, more), 1)


def MergeComposite(pattern_table: Any) -> Pass:
    """What a pattern table's rows `(name, pattern[, check])` match becomes calls of functions marked `Composite`.

    A name is the accelerator's whose table it is. Raises `RelayError` for one that has none, and for wrong rows."""
    if isinstance(pattern_table, str):
        pattern_table = get_pattern_table(pattern_table)
    return BuiltinPass("MergeComposite", lambda mod: merge_composite(mod, pattern_table), 0)


def AnnotateTarget(targets: str | list[str], include_non_call_ops: bool = True) -> Pass:
    """compiler_begin and compiler_end around what a target takes."""
    return BuiltinPass("AnnotateTarget", lambda mod: annotate_target(mod, targets, include_non_call_ops), 0)


def MergeCompilerRegions() -> Pass:
    """Neighbouring regions of one target are merged, where that makes no circle."""
    return BuiltinPass("MergeCompilerRegions", merge_compiler_regions, 0)


def PartitionGraph(mod_name: str = "default", bind_constants: bool = True) -> Pass:
    """Each region becomes a function of the module, marked for its compiler."""
    return BuiltinPass("PartitionGraph", lambda mod: partition_graph(mod, mod_name, bind_constants), 0)


def OutlineCompilerFunctionsWithExistingGlobalSymbols(compiler_filter: str = "") -> Pass:
    """Partitions that stand in place or in a let become functions of the module, under their `global_symbol`."""
    name = "OutlineCompilerFunctionsWithExistingGlobalSymbols"
    return BuiltinPass(name, lambda mod: outline_compiler_functions(mod, compiler_filter), 0)


def MarkCompilerFunctionsAsExtern(compiler_filter: str = "") -> Pass:
    """The module's partitions get the attribute `Extern` in place of all others: their code exists elsewhere."""
    return BuiltinPass("MarkCompilerFunctionsAsExtern", lambda mod: mark_compiler_functions_as_extern(mod, compiler_filter), 0)


def InlineCompilerFunctionsBoundTo(global_vars: Sequence[GlobalVar | str]) -> Pass:
    """These partitions are given up: what they compute stands where they were called."""
    return BuiltinPass("InlineCompilerFunctionsBoundTo", lambda mod: inline_compiler_functions(mod, global_vars), 0)


def BatchingOps() -> Pass:
    """The three `CombineParallel` passes, one after the other, in a context of level 4."""
    return Sequential([CombineParallelConv2D(), CombineParallelDense(), CombineParallelBatchMatmul()])


#: Every pass by name: what makes it.
PASSES: dict[str, Callable[..., Pass]] = {
    "InferType": InferType,
    "ToANormalForm": ToANormalForm,
    "ToGraphNormalForm": ToGraphNormalForm,
    "ToBasicBlockNormalForm": ToBasicBlockNormalForm,
    "SimplifyInference": SimplifyInference,
    "FuseOps": FuseOps,
    "FoldConstant": FoldConstant,
    "EliminateCommonSubexpr": EliminateCommonSubexpr,
    "DeadCodeElimination": DeadCodeElimination,
    "Inline": Inline,
    "RemoveUnusedFunctions": RemoveUnusedFunctions,
    "SimplifyExpr": SimplifyExpr,
    "CanonicalizeOps": CanonicalizeOps,
    "CanonicalizeCast": CanonicalizeCast,
    "DefuseOps": DefuseOps,
    "EtaExpand": EtaExpand,
    "LambdaLift": LambdaLift,
    "FastMath": FastMath,
    "DivToMul": DivToMul,
    "FoldExplicitPadding": FoldExplicitPadding,
    "FlattenAtrousConv": FlattenAtrousConv,
    "DynamicToStatic": DynamicToStatic,
    "SplitArgs": SplitArgs,
    "PlanDevices": PlanDevices,
    "AnnotateSpans": AnnotateSpans,
    "FoldScaleAxis": FoldScaleAxis,
    "BackwardFoldScaleAxis": BackwardFoldScaleAxis,
    "ForwardFoldScaleAxis": ForwardFoldScaleAxis,
    "CombineParallelConv2D": CombineParallelConv2D,
    "CombineParallelDense": CombineParallelDense,
    "CombineParallelBatchMatmul": CombineParallelBatchMatmul,
    "BatchingOps": BatchingOps,
    "QnnCanonicalizeOps": QnnCanonicalizeOps,
    "FakeQuantizationToInteger": FakeQuantizationToInteger,
    "ToMixedPrecision": ToMixedPrecision,
    "AlterOpLayout": AlterOpLayout,
    "ConvertLayout": ConvertLayout,
    "FirstOrderGradient": FirstOrderGradient,
    "Defunctionalization": _defunctionalization,
    "PartialEvaluate": PartialEvaluate,
    "LazyGradientInit": LazyGradientInit,
    "ToCPS": ToCPS,
    "UnCPS": UnCPS,
    "Legalize": Legalize,
    "MergeComposite": MergeComposite,
    "AnnotateTarget": AnnotateTarget,
    "MergeCompilerRegions": MergeCompilerRegions,
    "PartitionGraph": PartitionGraph,
    "OutlineCompilerFunctionsWithExistingGlobalSymbols": OutlineCompilerFunctionsWithExistingGlobalSymbols,
    "MarkCompilerFunctionsAsExtern": MarkCompilerFunctionsAsExtern,
    "InlineCompilerFunctionsBoundTo": InlineCompilerFunctionsBoundTo,
}


def parse_passes(text: str, more: dict[str, Any] | None = None) -> list[Pass]:
    """The passes that a text lists; `more` are further ones by name. Raises `RelayError`."""
    return _parse_passes(text, {**PASSES, **(more or {})})


__all__ = [
    "PASSES", "FoldConstantExpr", "InferTypeLocal", "ToANormalFormExpr",
    "FunctionPass", "gradient", "ModulePass", "Pass", "PassContext", "PassInfo", "PassInstrument",
    "PassTimingInstrument",
    "PrintAfterAll", "PrintBeforeAll", "PrintChanged", "PrintIRAfter", "PrintIRBefore", "Sequential", "Verify",
    "InferCorrectLayoutOutput", "LayoutConfig", "TempOpAttr", "function_pass", "module_pass", "parse_passes",
    "pass_instrument", "register_alter_op_layout", "register_convert_op_layout", "register_infer_correct_layout",
    "register_fake_quantization_to_integer", "register_legalize", "register_optional_fake_quantization_to_integer",
    "TensorAffineType", "TupleAffineType", "CompilationConfig", "VirtualDevice", "make_compilation_config", "to_cps",
    "un_cps", *PASSES,
]  # fmt: skip
