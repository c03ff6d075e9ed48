"""Every pass with the programs that give it something to do, as both sides are asked for it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import relaylang as relay
from relaylang.ir import Call, Function, GlobalVar, IRModule, Let, Var, children, post_order
from relaylang.ops.build import op_call
from relaylang.partition import get_pattern_table
from relaylang.passes.quantize.legalize import MAPS
from relaylang.patterns import is_op, wildcard
from relaylang.testing.generators import networks, quantized
from relaylang.testing.generators.functional import Functional
from relaylang.testing.generators.programs import Programs
from relaylang.transform import (
    AlterOpLayout,
    AnnotateTarget,
    InferType,
    MergeCompilerRegions,
    MergeComposite,
    PartitionGraph,
    PassContext,
    Sequential,
    TempOpAttr,
    gradient,
    parse_passes,
    to_cps,
    un_cps,
)
from relaylang.typing import check
from tests.conformance.blocks import in_blocks

# ---- programs


def _text(seed: int, **flags: bool) -> IRModule:
    mod = relay.parse(Functional(seed, **flags).text())
    assert isinstance(mod, IRModule)
    check(mod)
    return mod


def _marked(seed: int) -> IRModule:
    """Functions that others call, some of them marked to be put where they are called, and some that nobody calls."""
    mod = _control(seed, functions=4)
    made = {}
    for i, (gv, func) in enumerate(mod.functions.items()):
        marked = gv.name_hint != "main" and (seed >> i) % 3 != 2
        made[gv] = Function(func.params, func.body, func.ret_type, func.type_params, {"Inline": 1}) if marked else func
    return IRModule(made)


def _control(seed: int, **options: Any) -> IRModule:
    """A random program whose lets stand in one place each: TVM takes one that two blocks share for two."""
    while True:
        mod = Programs(seed, **options).module(10)
        met: set[int] = set()
        lets = [c for f in mod.functions.values() for n in post_order(f) for c in children(n) if isinstance(c, Let)]
        if not any(id(let) in met or met.add(id(let)) for let in lets):  # type: ignore[func-returns-value]
            return mod
        seed += 1000


KINDS: dict[str, Callable[[int], IRModule]] = {
    "control": _control,
    "data flow": lambda seed: passes("ToGraphNormalForm")(_control(seed, functions=0, control=False)),
    "functions": _text,
    "given functions": lambda seed: _text(seed, given=True, data=seed % 2 == 1),
    "references": lambda seed: _text(seed, references=True),
    "data": lambda seed: _text(seed, data=True),
    "all": lambda seed: _text(seed, references=True, data=True),
    "smooth": lambda seed: _text(seed, smooth=True),
    "smooth references": lambda seed: _text(seed, smooth=True, references=True),
    "marked": _marked,
    "images": lambda seed: networks.Image(seed).module(),
    "scaled images": lambda seed: networks.Image(seed, ("conv", "conv", "scale", "scale", "relu", "depthwise")).module(7),
    "normalised": lambda seed: networks.Image(seed, ("conv", "norm", "norm", "dropout", "relu", "bias")).module(8),
    "padded": lambda seed: networks.Image(seed, ("pad", "pad", "conv", "relu")).module(6),
    "atrous": lambda seed: networks.Image(seed, ("atrous", "atrous", "relu", "scale", "norm")).module(4),
    "parallel convolutions": lambda seed: networks.Parallel(seed).of_conv(2 + seed % 3),
    "parallel dense": lambda seed: networks.Parallel(seed).of_dense(2 + seed % 3),
    "parallel products": lambda seed: networks.Parallel(seed).of_batch(2 + seed % 3),
    "dense": lambda seed: networks.Dense(seed).module(),
    "differentiable": lambda seed: networks.Smooth(seed).module(),
    "zeros": lambda seed: networks.Zeros(seed).module(),
    "rewrites": lambda seed: networks.Rewrites(seed).module(),
    "casts": lambda seed: networks.Casts(seed).module(),
    "dynamic": lambda seed: networks.Dynamic(seed).module(),
    "wide": lambda seed: networks.Wide(seed).module(),
    "fake": lambda seed: quantized.Fake(seed).module(),
    "qnn": lambda seed: quantized.Qnn(seed).module(),
    "layers": lambda seed: quantized.Layers(seed).module(),
}


@functools.cache
def program(kind: str, seed: int) -> IRModule:
    return KINDS[kind](seed)


# ---- passes that need more than a name


def passes(text: str) -> Callable[[IRModule], IRModule]:
    """The passes that a text lists, one after the other."""

    def run(mod: IRModule) -> IRModule:
        return Sequential(parse_passes(text))(InferType()(mod))

    return run


def _changed(f: Callable[[Function, IRModule], Function]) -> Callable[[IRModule], IRModule]:
    def run(mod: IRModule) -> IRModule:
        new = InferType()(IRModule(mod.functions, mod.type_definitions))
        new["main"] = f(new["main"], new)
        return InferType()(new)

    return run


def toy_table() -> list[Any]:
    conv = is_op("nn.conv2d")(wildcard(), wildcard())
    return [
        ("toy.conv_bias_relu", is_op("nn.relu")(is_op("add")(conv, wildcard()))),
        ("toy.conv_relu", is_op("nn.relu")(is_op("nn.conv2d")(wildcard(), wildcard()))),
        ("toy.dense_add", is_op("add")(is_op("nn.dense")(wildcard(), wildcard()), wildcard())),
        ("toy.add_relu", is_op("nn.relu")(is_op("add")(wildcard(), wildcard()))),
    ]


def partition(target: str) -> Callable[[IRModule], IRModule]:
    steps = [InferType(), MergeComposite(get_pattern_table(target)), AnnotateTarget(target), MergeCompilerRegions()]
    return Sequential([*steps, PartitionGraph()])


def merged(target: str) -> Callable[[IRModule], IRModule]:
    return lambda mod: MergeComposite(get_pattern_table(target))(InferType()(mod))


def blocks_of_4(mod: IRModule) -> IRModule:
    with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", in_blocks(relay, 4)):
        return AlterOpLayout()(InferType()(mod))


def called_with_identity(mod: IRModule) -> IRModule:
    """`@main` in continuation passing style, called with a continuation that gives its result back."""
    main = mod["main"]
    k = main.params[-1]
    result = (k.checked_type or k.type_annotation).arg_types[0]
    x = Var("x", result)
    params = [Var(p.name_hint, p.checked_type or p.type_annotation) for p in main.params[:-1]]
    inner = GlobalVar("main_cps")
    functions = {gv: f for gv, f in mod.functions.items() if gv.name_hint != "main"}
    functions[inner] = main
    functions[GlobalVar("main")] = Function(params, Call(inner, [*params, Function([x], x, result)], None, [result]))
    return InferType()(IRModule(functions, mod.type_definitions))


MAPS["TestLegalize"] = {"nn.relu": lambda attrs, args, types: op_call("maximum", [args[0], relay.const(0.0)])}


@dataclass(frozen=True)
class Spec:
    """One pass. `kinds`: the programs that it is given; `prepare`: our passes that make them ready for both sides.

    `keeps`: what it makes computes what the program did, so ours is run beside the program itself, too. `finish` makes a
    program that can be called of what both made.
    """

    name: str
    theirs: str
    ours: Callable[[IRModule], IRModule]
    kinds: tuple[str, ...]
    prepare: str = ""
    keeps: bool = True
    networks: bool = True
    finish: Callable[[IRModule], IRModule] | None = None
    level: int = 4
    config: dict[str, Any] = field(default_factory=dict)

    def run(self, mod: IRModule) -> IRModule:
        with PassContext(opt_level=self.level):
            return InferType()(self.ours(mod))

    def ready(self, mod: IRModule) -> IRModule:
        return passes(self.prepare)(mod) if self.prepare else mod


def named(name: str, *kinds: str, theirs: str = "", **options: Any) -> Spec:
    """A pass that has one name and the same options on both sides."""
    call = name if name.endswith(")") else f"{name}()"
    return Spec(name, theirs or f"transform.{call}", passes(name), kinds, **options)


CONTROL = ("control", "functions", "references", "data", "all")
NETS = ("images", "dense", "parallel convolutions")
PLAIN_NETS = ("scaled images", "dense")
TARGETS = {
    "dnnl": ("images", "dense"),
    "bnns": ("images", "dense"),
    "arm_compute_lib": ("images", "layers", "dense"),
    "cmsis-nn": ("layers", "qnn"),
    "ethos-u": ("layers",),
}

SPECS: list[Spec] = [
    named("InferType", *KINDS),
    named("ToANormalForm", *CONTROL, "images"),
    named("ToGraphNormalForm", *CONTROL),
    named("ToBasicBlockNormalForm", *CONTROL),
    Spec(
        "ToCPS",
        "cps",
        _changed(lambda f, mod: to_cps(f, mod)),
        CONTROL,
        prepare="ToANormalForm",
        networks=False,
        finish=called_with_identity,
    ),
    Spec(
        "UnCPS",
        "lambda mod: cps(mod, True)",
        _changed(lambda f, mod: un_cps(_typed(to_cps(f, mod), mod))),
        CONTROL,
        prepare="ToANormalForm",
        networks=False,
    ),
    named("FoldConstant", "control", "functions", "rewrites", "images", "dynamic"),
    named("FoldConstant(True)", "qnn", "fake", theirs="transform.FoldConstant(fold_qnn=True)"),
    named("FoldScaleAxis", *PLAIN_NETS),
    named("BackwardFoldScaleAxis", *PLAIN_NETS),
    named("ForwardFoldScaleAxis", *PLAIN_NETS),
    named("SimplifyInference", "normalised", "images", "dense"),
    named("SimplifyExpr", "rewrites", "images", "control"),
    named("CanonicalizeOps", "images", "dense"),
    named("CanonicalizeCast", "casts", "qnn", prepare="QnnCanonicalizeOps"),
    named("EliminateCommonSubexpr", "rewrites", "control", "images"),
    named("DeadCodeElimination", *CONTROL),
    named("DeadCodeElimination(inline_once=True)", *CONTROL),
    named("Inline", "marked"),
    named("EtaExpand(True)", "data", "all"),
    named("EtaExpand(False, True)", "functions", "data", "control"),
    named("LambdaLift", "functions", "control", "data"),
    Spec(
        "Defunctionalization",
        "defunctionalize",
        passes("Defunctionalization"),
        ("given functions", "functions", "data"),
        networks=False,
    ),
    named("PartialEvaluate", *CONTROL, networks=False, prepare="ToANormalForm"),
    named("RemoveUnusedFunctions", "marked", "functions"),
    *[
        named(
            f"FuseOps({n})",
            "images",
            "dense",
            "control",
            "rewrites",
            theirs=f"transform.FuseOps(fuse_opt_level={n})",
            prepare="SimplifyInference",
        )
        for n in range(5)
    ],
    named("DefuseOps", "images", "dense", prepare="SimplifyInference,FuseOps(3)"),
    named("CombineParallelConv2D(2)", "parallel convolutions", "images", theirs="transform.CombineParallelConv2D(min_num_branches=2)"),
    named("CombineParallelConv2D", "parallel convolutions"),
    named(
        "CombineParallelDense(2)",
        "parallel dense",
        "dense",
        theirs="transform.CombineParallelDense(min_num_branches=2)",
        prepare="SimplifyInference",
    ),
    named("CombineParallelDense(2, to_batch=False)", "parallel dense", theirs="transform.CombineParallelDense(2, False)"),
    named("CombineParallelBatchMatmul(2)", "parallel products", theirs="transform.CombineParallelBatchMatmul(2)"),
    named("ConvertLayout({'nn.conv2d': ['NHWC', 'default']})", "images", "padded"),
    named("ConvertLayout({'nn.conv2d': ['NHWC', 'HWIO'], 'nn.max_pool2d': ['NHWC']})", "images"),
    named("ConvertLayout({'qnn.conv2d': ['NCHW', 'default']})", "layers"),
    Spec("Legalize", "test_rule('TestLegalize')", passes("Legalize('TestLegalize')"), ("images", "dense", "control")),
    named("QnnCanonicalizeOps", "qnn", "layers", theirs="here(relay.qnn.transform.CanonicalizeOps())"),
    Spec("qnn.Legalize", "here(relay.qnn.transform.Legalize())", passes("Legalize('FTVMQnnLegalize')"), ("qnn", "layers")),
    Spec(
        "AlterOpLayout, blocks of 4",
        "here(channels_in_blocks(4))",
        blocks_of_4,
        ("images", "scaled images"),
        prepare="SimplifyInference,CanonicalizeOps",
    ),
    named("FakeQuantizationToInteger", "fake", keeps=False),
    named("FakeQuantizationToInteger(use_qat=True)", "fake", keeps=False),
    named("ToMixedPrecision", *NETS, "control", keeps=False),
    named("DynamicToStatic", "dynamic"),
    named("FastMath", "images", "rewrites", "dense", keeps=False),
    named("DivToMul", "rewrites"),
    named("FlattenAtrousConv", "atrous"),
    named("FoldExplicitPadding", "padded", "layers"),
    named("FirstOrderGradient", "differentiable", networks=False, keeps=False),
    Spec(
        "gradient, higher order",
        "gradient('higher_order')",
        _changed(lambda f, m: gradient(f, m)),
        ("differentiable", "smooth", "smooth references"),
        networks=False,
        keeps=False,
        prepare="ToANormalForm",
    ),
    *[named(f"SplitArgs({n})", "wide", "control") for n in (2, 3, 5)],
    named("LazyGradientInit", "differentiable", "zeros", networks=False, prepare="ToANormalForm"),
    named("AnnotateSpans", "images", "control", "data"),
    Spec(
        "MergeComposite, a table of four rows",
        "transform.MergeComposite(toy_table())",
        lambda mod: MergeComposite(toy_table())(InferType()(mod)),
        ("images", "dense", "control"),
    ),
    *[Spec(f"MergeComposite, {t}", f"transform.MergeComposite(table('{t}'))", merged(t), kinds) for t, kinds in TARGETS.items()],
    *[Spec(f"partitioned, {t}", f"partition('{t}')", partition(t), kinds) for t, kinds in TARGETS.items()],
]


def _typed(func: Function, mod: IRModule) -> Function:
    others = {g: f for g, f in mod.functions.items() if g.name_hint != "main"}
    return InferType()(IRModule.from_expr(func, others, mod.type_definitions))["main"]  # type: ignore[no-any-return]
