"""Every pass is linear in the program, as calls and as lets: counted, not timed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from relaylang.diagnostics import RelayError
from relaylang.ir import Call, Expr, Function, If, IRModule, Let, TensorType, Tuple, TupleGetItem, Var, const
from relaylang.ops.build import op_call
from relaylang.patterns import is_op, wildcard
from relaylang.transform import (
    PASSES,
    AnnotateTarget,
    InferType,
    MergeCompilerRegions,
    MergeComposite,
    PartitionGraph,
    Pass,
    PassContext,
    parse_passes,
)
from tests.growth import assert_linear
from tests.shared import few

Steps = list[Callable[[Expr], Expr]]

IMAGE, MATRIX = TensorType((1, 2, 3, 3)), TensorType((2, 2))
VECTOR = const(np.array([0.5, 2.0], "float32"))
SCALE = const(np.array([[[0.5]], [[2.0]]], "float32"))
WEIGHT = const(np.full((2, 2), 0.5, "float32"))
KERNEL = const(np.full((2, 2, 1, 1), 0.5, "float32"))


def _elementwise(x: Expr) -> Steps:
    return [
        lambda e: op_call("nn.relu", [e]),
        lambda e: op_call("add", [e, x]),
        lambda e: op_call("exp", [e]),
        lambda e: op_call("divide", [e, VECTOR]),
    ]


def _dense(x: Expr) -> Steps:
    return [
        lambda e: op_call("nn.dense", [e, WEIGHT], units=2),
        lambda e: op_call("multiply", [e, VECTOR]),
        lambda e: op_call("nn.bias_add", [e, VECTOR]),
        lambda e: op_call("nn.softmax", [e]),
    ]


def _image(x: Expr) -> Steps:
    return [
        lambda e: op_call("nn.conv2d", [e, KERNEL], channels=2, kernel_size=[1, 1], padding=[0, 0, 0, 0]),
        lambda e: op_call("multiply", [e, SCALE]),
        lambda e: op_call("nn.relu", [e]),
        lambda e: TupleGetItem(op_call("nn.batch_norm", [e, VECTOR, VECTOR, VECTOR, VECTOR]), 0),
        lambda e: op_call("nn.pad", [e, const(0.0)], pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]], pad_mode="constant"),
        lambda e: op_call("nn.max_pool2d", [e], pool_size=[3, 3], padding=[0, 0, 0, 0]),
    ]


def _shapes(x: Expr) -> Steps:
    return [
        lambda e: op_call("transpose", [e], axes=[1, 0]),
        lambda e: op_call("transpose", [e], axes=[1, 0]),
        lambda e: op_call("reshape", [e], newshape=[4]),
        lambda e: op_call("reshape", [e], newshape=[2, 2]),
        lambda e: op_call("cast", [e], dtype="float64"),
        lambda e: op_call("cast", [e], dtype="float32"),
        lambda e: op_call("dyn.reshape", [e, op_call("shape_of", [x], dtype="int64")]),
        lambda e: op_call("add", [e, op_call("multiply", [const(2.0), const(0.5)])]),
    ]


def _quantized(x: Expr) -> Steps:
    return [
        lambda e: op_call("qnn.quantize", [e, const(0.5), const(3)], out_dtype="int8"),
        lambda e: op_call("qnn.dequantize", [e, const(0.5), const(3)], out_dtype="float32"),
        lambda e: op_call("nn.relu", [e]),
    ]


KINDS: dict[str, tuple[TensorType, Callable[[Expr], Steps]]] = {
    "elementwise": (MATRIX, _elementwise),
    "dense": (MATRIX, _dense),
    "image": (IMAGE, _image),
    "shapes": (MATRIX, _shapes),
    "quantized": (MATRIX, _quantized),
}


def chain(kind: str, n: int) -> IRModule:
    """`n` steps, and those that bring the first type back."""
    ty, steps = KINDS[kind]
    x = Var("x", ty)
    layer = steps(x)
    node: Expr = x
    for i in range(-(-n // len(layer)) * len(layer)):
        node = layer[i % len(layer)](node)
    return InferType()(IRModule.from_expr(Function([x], node)))


def lets(kind: str, n: int) -> IRModule:
    """As `chain`, each step bound by a let."""
    ty, steps = KINDS[kind]
    x = Var("x", ty)
    layer = steps(x)
    count = -(-n // len(layer)) * len(layer)
    names = [Var(f"v{i}") for i in range(count)]
    body: Expr = names[-1]
    for i in reversed(range(count)):
        body = Let(names[i], layer[i % len(layer)](names[i - 1] if i else x), body)
    return InferType()(IRModule.from_expr(Function([x], body)))


SHAPES = {"chain": chain, "lets": lets}
TABLE = [
    ("toy.layer", is_op("nn.relu")(is_op("multiply")(wildcard(), wildcard()))),
    ("toy.add", is_op("add")(wildcard(), wildcard())),
]
PARTITION: dict[str, Callable[[], Pass]] = {
    "MergeComposite": lambda: MergeComposite(TABLE),
    "AnnotateTarget": lambda: AnnotateTarget("toy"),
    "MergeCompilerRegions": MergeCompilerRegions,
    "PartitionGraph": PartitionGraph,
}
#: Each pass with the kinds of programs that it changes. A pass with arguments has its call.
CASES: list[tuple[str, str]] = [
    ("InferType", "elementwise image"),
    ("ToANormalForm", "elementwise image"),
    ("ToGraphNormalForm", "elementwise image"),
    ("ToBasicBlockNormalForm", "elementwise image"),
    ("SimplifyInference", "elementwise image"),
    ("FuseOps", "elementwise dense image shapes"),
    ("FuseOps(0)", "elementwise"),
    ("FoldConstant", "elementwise shapes image"),
    ("FoldConstant(True)", "quantized"),
    ("EliminateCommonSubexpr", "elementwise image shapes"),
    ("DeadCodeElimination", "elementwise"),
    ("DeadCodeElimination(inline_once=True)", "elementwise"),
    ("Inline", "elementwise"),
    ("RemoveUnusedFunctions", "elementwise"),
    ("SimplifyExpr", "elementwise shapes"),
    ("CanonicalizeOps", "elementwise dense"),
    ("CanonicalizeCast", "elementwise shapes"),
    ("DefuseOps", "elementwise"),
    ("EtaExpand", "elementwise"),
    ("EtaExpand(expand_global_var=True)", "elementwise"),
    ("LambdaLift", "elementwise"),
    ("FastMath", "elementwise dense"),
    ("DivToMul", "elementwise"),
    ("FoldExplicitPadding", "elementwise image"),
    ("FlattenAtrousConv", "elementwise image"),
    ("DynamicToStatic", "elementwise shapes"),
    ("SplitArgs(3)", "elementwise"),
    ("FoldScaleAxis", "elementwise dense image"),
    ("BackwardFoldScaleAxis", "dense image"),
    ("ForwardFoldScaleAxis", "dense image"),
    ("CombineParallelConv2D", "elementwise image"),
    ("CombineParallelDense", "elementwise dense"),
    ("CombineParallelBatchMatmul", "elementwise"),
    ("QnnCanonicalizeOps", "elementwise quantized"),
    ("FakeQuantizationToInteger", "elementwise quantized"),
    ("ToMixedPrecision", "elementwise dense image"),
    ("ConvertLayout({'nn.conv2d': ['NHWC', 'default']})", "elementwise image"),
    ("FirstOrderGradient", "elementwise dense"),
    ("Defunctionalization", "elementwise"),
    ("PartialEvaluate", "elementwise"),
    ("LazyGradientInit", "elementwise"),
    ("ToCPS", "elementwise"),
    ("UnCPS", "elementwise"),
    ("Legalize", "elementwise quantized"),
    ("FlexibleShapeDispatch([2], affects_output=False)", "elementwise"),
    ("ChangeBatch({'x': 0}, 8)", "elementwise"),
    ("InlineCompilerFunctionsBoundTo([])", "elementwise"),
    *[(name, "elementwise image") for name in PARTITION],
]
# AnnotateSpans prints and reads, places have more digits in a longer text: it is below.
CASES += [(name, "elementwise") for name in PASSES if name not in {c[0].partition("(")[0] for c in CASES} | {"AnnotateSpans"}]


def made(name: str) -> Pass:
    return PARTITION[name]() if name in PARTITION else parse_passes(name)[0]


@pytest.mark.sample(3)
@pytest.mark.parametrize("name, kind", [(name, kind) for name, kinds in CASES for kind in kinds.split()])
@pytest.mark.parametrize("shape", few(SHAPES, "lets"))
def test_passes_are_linear(name: str, kind: str, shape: str) -> None:
    def prepare(n: int) -> Callable[[], object]:
        mod = SHAPES[shape](kind, n)
        for step in PARTITION if name in PARTITION else ():
            if step == name:
                break
            mod = made(step)(mod)

        def run() -> None:
            with PassContext(opt_level=4):
                try:
                    made(name)(mod)
                except RelayError as wrong:  # what only data flow has, of lets
                    assert wrong.diagnostics[0].code == "R0511"

        return run

    assert_linear(prepare, 40)


@pytest.mark.sample(2)
@pytest.mark.parametrize("shape", SHAPES)
def test_spans_are_found_in_time(shape: str) -> None:
    def prepare(n: int) -> Callable[[], object]:
        mod = SHAPES[shape]("elementwise", n)
        return lambda: parse_passes("AnnotateSpans")[0](mod)

    assert_linear(prepare, 300)


# ---- shapes on which a walk that looks too far is quadratic


def _main(body: Expr, *params: Var) -> IRModule:
    return InferType()(IRModule.from_expr(Function(list(params), body)))


def shared(n: int) -> IRModule:
    """Two long branches that use one value at every step."""
    x = Var("x", MATRIX)
    value = left = right = op_call("exp", [x])
    for _ in range(n // 2):
        left, right = op_call("add", [left, value]), op_call("multiply", [right, value])
    return _main(op_call("add", [left, right]), x)


def doubled(n: int) -> IRModule:
    """Every step uses the one before twice: as many paths as two to the power of `n`."""
    x = Var("x", MATRIX)
    node: Expr = x
    for _ in range(n):
        node = op_call("add", [node, node])
    return _main(node, x)


def fan(n: int) -> IRModule:
    """One value with `n` users, in one tuple."""
    x = Var("x", MATRIX)
    value = op_call("exp", [x])
    return _main(op_call("concatenate", [Tuple([op_call("nn.relu", [value]) for _ in range(n)])], axis=0), x)


def branches(n: int) -> IRModule:
    """Branches in branches, with a value that all of them use."""
    x, c = Var("x", MATRIX), Var("c", TensorType((), "bool"))
    value = op_call("tanh", [x])
    node: Expr = value
    for _ in range(n):
        node = If(c, op_call("add", [node, value]), value)
    return _main(node, x, c)


def closures(n: int) -> IRModule:
    """Functions that lets bind, each called once."""
    x = Var("x", MATRIX)
    bound: list[tuple[Var, Expr]] = []
    node: Expr = x
    for i in range(n):
        name, result, param = Var(f"f{i}"), Var(f"v{i}"), Var("p", MATRIX)
        bound += [(name, Function([param], op_call("exp", [param]), MATRIX)), (result, Call(name, [node]))]
        node = result
    for var, value in reversed(bound):
        node = Let(var, value, node)
    return _main(node, x)


def inner_lets(n: int) -> IRModule:
    """Lets in the values of lets."""
    x = Var("x", MATRIX)
    node: Expr = x
    for i in range(n):
        var = Var(f"v{i}")
        node = Let(var, node, op_call("exp", [var]))
    return _main(node, x)


def nested(n: int) -> IRModule:
    """Functions in functions, each called where it stands."""
    x = Var("x", MATRIX)
    node: Expr = op_call("exp", [x])
    for _ in range(n):
        param = Var("p", MATRIX)
        node = Call(Function([param], op_call("add", [node, param]), MATRIX), [x])
    return _main(node, x)


@pytest.mark.sweep
@pytest.mark.parametrize("shape", few([shared, doubled, fan, branches, closures, inner_lets, nested], fan))
def test_no_shape_makes_a_pass_quadratic(shape: Callable[[int], IRModule]) -> None:
    for name in dict.fromkeys([name for name, _ in CASES]):
        flow = shape in (shared, doubled, fan)
        # Functions inside these programs state their parameters' types, which a pass cannot give another batch.
        if (name == "FirstOrderGradient" and not flow) or (name.startswith("ChangeBatch") and shape in (closures, nested)):
            continue
        transform = made(name)

        def prepare(n: int, transform: Pass = transform) -> Callable[[], object]:
            mod = shape(n)

            def run() -> None:
                with PassContext(opt_level=4):
                    transform(mod)

            return run

        # Of a small program PartialEvaluate unfolds all, of a large one as much as its bound allows.
        assert_linear(prepare, 200 if name == "PartialEvaluate" and shape is nested else 40)


@pytest.mark.sweep
def test_long_programs_are_no_depth() -> None:
    programs = [chain("elementwise", 2_000), lets("elementwise", 2_000), inner_lets(2_000), branches(2_000), closures(2_000)]
    for name in ("FuseOps", "FoldConstant", "SimplifyInference", "EliminateCommonSubexpr", "ToANormalForm"):
        for mod in programs:
            assert isinstance(made(name)(mod), IRModule)
