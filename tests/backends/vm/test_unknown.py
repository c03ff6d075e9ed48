"""Kernels for unknown extents: compiled code beside the interpreter, from the first run of a loaded file on."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from relaylang.backends.vm import compile_vm, kernels
from relaylang.diagnostics import RelayError, error
from relaylang.interpreter import evaluate
from relaylang.ir import ANY, Call, Expr, Function, IRModule, TensorType, Var, post_order
from relaylang.ir.binding import bind_params
from relaylang.ops import get
from relaylang.ops.build import op_call
from relaylang.runtime.vm.executable import VMExecutable, loads
from relaylang.typing import check
from tests.backends.vm.agree import assert_same, outcome
from tests.backends.vm.test_programs import module


def loaded(mod: IRModule) -> VMExecutable:
    """A program from its file, as another machine has it."""
    return loads(compile_vm(mod).content())


def assert_compiled(made: VMExecutable, mod: IRModule, *args: Any) -> None:
    """A program gives what the interpreter gives, and asks the interpreter for nothing."""
    assert_same(made.run(*args), evaluate(mod, *args))
    assert made.loaded.hosts == {}


NETWORK = """
def @main(%x: Tensor[(?, 3, 8, 8), float32], %w: Tensor[(4, 3, 3, 3), float32], %d: Tensor[(5, 4), float32]) {
  let %y = nn.relu(nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3]));
  let %z = add(%y, nn.max_pool2d(%y, pool_size=[3, 3], padding=[1, 1, 1, 1]));
  nn.softmax(nn.dense(nn.batch_flatten(nn.global_avg_pool2d(%z)), %d)) }
"""


def _network(images: int) -> list[np.ndarray]:
    rng = np.random.default_rng(images)
    return [rng.standard_normal(shape).astype("float32") for shape in ((images, 3, 8, 8), (4, 3, 3, 3), (5, 4))]


@pytest.mark.sweep
def test_a_network_of_batches() -> None:
    mod = module(NETWORK)
    made = loaded(mod)
    assert [p.region >= 0 for p in made.program.packed] == [True]
    for images in (0, 1, 2, 7):
        assert_compiled(made, mod, *_network(images))


def test_batches_that_do_not_match() -> None:
    """The interpreter computes what it can, and its error has its place."""
    mod = module("""
def @main(%x: Tensor[(?, 2, 4, 4), float32], %y: Tensor[(?, 2, 4, 4), float32]) {
  nn.max_pool2d(add(%x, %y), pool_size=[2, 2]) }
""")
    made = loaded(mod)
    x = np.arange(96, dtype="float32").reshape(3, 2, 4, 4)
    assert_compiled(made, mod, x, x)
    assert_same(made.run(x[:1], x), evaluate(mod, x[:1], x))
    with pytest.raises(RelayError) as wanted:
        evaluate(mod, x[:2], x)
    with pytest.raises(RelayError) as found:
        made.run(x[:2], x)
    (ours,), (theirs,) = found.value.diagnostics, wanted.value.diagnostics
    assert (ours.code, ours.title, ours.notes[-1]) == (theirs.code, theirs.title, theirs.notes[-1])
    assert ours.span is not None and theirs.span is not None and ours.span.text == theirs.span.text == "add(%x, %y)"


def test_an_operator_without_code_leaves_its_neighbours_compiled() -> None:
    mod = module("""
def @main(%x: Tensor[(?, 4), float32], %y: Tensor[(3, 4), float32]) {
  let %a = tanh(%x);
  let %b = argwhere(greater(%a, 0f));
  let %c = nn.dense(%a, %y);
  (%b, sigmoid(%c)) }
""")
    made = loaded(mod)
    kinds = [p.region >= 0 for p in made.program.packed]
    assert kinds.count(False) == 1 and kinds.count(True) >= 2
    x = np.random.default_rng(0).standard_normal((5, 4)).astype("float32")
    assert_same(made.run(x, x[:3]), evaluate(mod, x, x[:3]))


def test_a_region_with_a_call_that_is_refused() -> None:
    """The calls around it stay compiled, also where attributes are what the backend refuses."""
    mod = module("""
def @main(%x: Tensor[(2, 3, 3), float32]) {
  let %a = tanh(%x);
  let %t = split(%a, indices_or_sections=3, axis=1);
  let %b = einsum((%a, %a), equation="...ij,...jk->...ik");
  let %c = concatenate((sigmoid(%b), %t.1, %a), axis=1);
  (%c, concatenate(%t, axis=2)) }
""")
    made = loaded(mod)
    assert [p.region >= 0 for p in made.program.packed] == [True, False, True]
    x = np.random.default_rng(0).standard_normal((2, 3, 3)).astype("float32")
    assert_same(made.run(x), evaluate(mod, x))


def test_calls_that_have_no_common_kernel() -> None:
    """Where one kernel would read too many extents, each call gets its own."""
    names = [f"%x{n}" for n in range(13)]
    params = ", ".join(f"{name}: Tensor[(?, ?), float32]" for name in names)
    ends = ", ".join(f"tanh({name})" for name in names)
    mod = module(f"def @main({params}) {{ ({ends}) }}")
    made = loaded(mod)
    assert [p.region >= 0 for p in made.program.packed] == [True] * 13
    assert_compiled(made, mod, *[np.full((n + 1, 2), n / 8, "float32") for n in range(13)])


def test_operators_without_places_that_others_replace() -> None:
    """Work does not grow with the paths of a program that was not parsed."""
    x = Var("x", TensorType((ANY, 2, ANY, 4), "float32"))
    body: Expr = x
    for _ in range(40):
        body = op_call("add", [body, body])
    mod = IRModule.from_expr(Function([x], op_call("nn.upsampling", [body], scale_h=2.0, scale_w=3.0)))
    check(mod)
    assert_compiled(compile_vm(mod), mod, np.ones((1, 2, 3, 4), "float32"))


def test_large_constants_stand_in_a_file_once() -> None:
    mod = module(NETWORK)
    bound = bind_params(mod, {"w": _network(1)[1], "d": np.ones((5, 4), "float32")})
    check(bound)
    made = loaded(bound)
    (packed,) = made.program.packed
    assert packed.constants and set(packed.constants) <= set(packed.weights)
    # The interpreter has them too.
    x = _network(1)[0]
    wanted = made.run(x)
    packed.region = -1
    assert_same(made.run(x), wanted)


ATTENTION = """
def @main(%x: Tensor[(?, ?, 8), float32], %q: Tensor[(8, 8), float32], %k: Tensor[(8, 8), float32]) {
  let %a = nn.dense(%x, %q);
  let %b = nn.dense(%x, %k);
  let %s = nn.softmax(multiply(nn.batch_matmul(%a, %b, transpose_b=True), 0.5f));
  let %y = add(nn.batch_matmul(%s, %x, transpose_b=False), %x);
  let %m = mean(%y, axis=[-1], keepdims=True);
  (nn.layer_norm(%y, ones(shape=[8], dtype="float32"), zeros(shape=[8], dtype="float32")), subtract(%y, %m), max(%y, axis=[1])) }
"""
#: Programs of unknown extents -> the shapes of their arguments. `n` and `m` are the unknown ones.
PROGRAMS: dict[str, tuple[str, Any]] = {
    "attention": (ATTENTION, lambda n, m: [(n, m, 8), (8, 8), (8, 8)]),
    "elements": (
        """
def @main(%x: Tensor[(?, ?), float32], %y: Tensor[(?, ?), float32], %z: Tensor[(?, 1), float32]) {
  tanh(add(multiply(%x, %y), where(less(%x, %y), divide(%x, 2f), broadcast_to_like(%z, %x)))) }
""",
        lambda n, m: [(n, m), (n, m), (n, 1)],
    ),
    "layout": (
        """
def @main(%x: Tensor[(?, ?, 4), float32]) {
  let %t = transpose(%x, axes=[2, 0, 1]);
  let %r = reshape(%x, newshape=[-1, 2]);
  (concatenate((%t, %t), axis=1), %r, reverse(%r, axis=0), expand_dims(squeeze(sum(%r, axis=[1], keepdims=True), axis=[1]), axis=0),
   stack((%x, %x), axis=1), split(%x, indices_or_sections=2, axis=2), shape_of(%t, dtype="int64"), tile(%r, reps=[1, 3])) }
""",
        lambda n, m: [(n, m, 4)],
    ),
    "reductions": (
        """
def @main(%x: Tensor[(?, ?), float32]) {
  (sum(%x), mean(%x, axis=[0]), min(%x, axis=[1]), argmax(%x, axis=[1]), cumsum(%x, axis=1), sort(%x, axis=1),
   nn.log_softmax(%x, axis=0)) }
""",
        lambda n, m: [(n, m)],
    ),
    "a table": (
        """
def @main(%x: Tensor[(?, ?), float32], %i: Tensor[(3), float32]) {
  let %n = cast(abs(%i), dtype="int32");
  (take(%x, %n, axis=0), take(%x, %n, axis=1, mode="wrap"), one_hot(%n, 1f, 0f, depth=4, axis=-1, dtype="float32")) }
""",
        lambda n, m: [(n, m), (3,)],
    ),
    "channels apart by an unknown extent": (
        """
def @main(%x: Tensor[(?, 3, ?, ?), float32]) {
  let %w = reshape(arange(0f, 1.6875f, 0.001953125f, dtype="float32"), newshape=[32, 3, 3, 3]);
  nn.conv2d(%x, %w, strides=[2, 2], padding=[0, 0, 0, 0], channels=32, kernel_size=[3, 3]) }
""",
        lambda n, m: [(n, 3, m + 2, n + 6)],
    ),
    "quantised": (
        """
def @main(%x: Tensor[(?, 5), float32]) {
  let %q = qnn.quantize(%x, 0.1f, 3, out_dtype="int8");
  qnn.dequantize(%q, 0.1f, 3) }
""",
        lambda n, m: [(n, 5)],
    ),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_unknown_extents(name: str) -> None:
    """They run as compiled code for all extents, but none of 0, of which there is nothing to compute."""
    text, shapes = PROGRAMS[name]
    mod = module(text)
    made = loaded(mod)
    rng = np.random.default_rng(0)
    for n, m in ((2, 3), (1, 1), (5, 40), (1, 17), (33, 2)):
        assert_compiled(made, mod, *[rng.standard_normal(s).astype("float32") for s in shapes(n, m)])
    for n, m in ((0, 3), (3, 0)):
        given = [rng.standard_normal(s).astype("float32") for s in shapes(n, m)]
        wanted, failure = outcome(lambda given=given: evaluate(mod, *given))
        got, code = outcome(lambda given=given: made.run(*given))
        assert code == failure
        if failure is None:
            assert_same(got, wanted)


EMPTY = """
def @main(%x: Tensor[(?, ?, 4), float32], %y: Tensor[(?, ?, 4), float32]) {
  let %z = tanh(add(%x, %y));
  (transpose(%z), concatenate((%z, %x), axis=1), reshape(%z, newshape=[-1, 2]), nn.softmax(%z)) }
"""


@pytest.mark.parametrize("rows, columns", [(0, 3), (3, 0), (0, 0), (2, 3)])
def test_results_without_elements(rows: int, columns: int) -> None:
    """The machine gives them their extents, and asks the interpreter for nothing."""
    mod = module(EMPTY)
    x = np.ones((rows, columns, 4), "float32")
    assert_compiled(loaded(mod), mod, x, x)


@pytest.mark.parametrize(
    "body",
    [
        "max(%x, axis=[0])",  # results of no elements, of a reduction of none
        "sum(%x)",
        "nn.pad(%x, 0f, pad_width=[[1, 0], [0, 0]])",
        'shape_of(%x, dtype="int64")',
        "take(%x, 2i64, axis=0)",
        "reshape(%x, newshape=[3, -1])",
        "nn.max_pool1d(expand_dims(%x, axis=0), pool_size=[2])",
        "strided_slice(exp(sum(%x, axis=[1], keepdims=True)), begin=[0, 0], end=[1, 0])",
    ],
)
def test_inputs_without_elements(body: str) -> None:
    """Values and errors are the interpreter's, whether results have elements or not."""
    mod = module(f"def @main(%x: Tensor[(?, ?), float32]) {{ {body} }}")
    executable = loaded(mod)
    for shape in ((0, 3), (3, 0), (0, 0), (3, 2)):
        x = np.ones(shape, "float32")
        wanted, failure = outcome(lambda x=x: evaluate(mod, x))
        got, code = outcome(lambda x=x: executable.run(x))
        assert code == failure
        if failure is None:
            assert_same(got, wanted)


def test_an_axis_of_unknown_extent_is_squeezed_away() -> None:
    """The kernel checks that its extent is 1."""
    mod = module("def @main(%x: Tensor[(?, ?, ?), float32]) { exp(squeeze(%x, axis=[1])) }")
    executable = loaded(mod)
    for shape in ((2, 1, 3), (1, 1, 1), (0, 1, 3)):
        assert_compiled(executable, mod, np.random.default_rng(0).standard_normal(shape).astype("float32"))
    x = np.ones((2, 2, 3), "float32")
    with pytest.raises(RelayError) as wanted:
        evaluate(mod, x)
    with pytest.raises(RelayError) as caught:
        executable.run(x)
    assert caught.value.diagnostics[0].code == wanted.value.diagnostics[0].code


def test_numbers_of_another_class_among_the_extents() -> None:
    """Their products with sizes are sizes."""

    class Boxed(int):
        pass

    x = Var("x", TensorType((ANY, Boxed(3), ANY), "float32"))
    mod = IRModule.from_expr(Function([x], op_call("max", [x], axis=[1, 2])))
    check(mod)
    assert_compiled(compile_vm(mod), mod, np.arange(24, dtype="float32").reshape(2, 3, 4))


def test_extents_that_do_not_match() -> None:
    """The failure is the interpreter's, with its place."""
    mod = module("def @main(%x: Tensor[(?, 3), float32], %y: Tensor[(?, 3), float32]) { tanh(add(%x, %y)) }")
    made = loaded(mod)
    x = np.arange(12, dtype="float32").reshape(4, 3)
    assert_compiled(made, mod, x, x)
    assert_same(made.run(x, x[:1]), evaluate(mod, x, x[:1]))
    with pytest.raises(RelayError, match="add") as failed:
        made.run(x, x[:2])
    (found,) = failed.value.diagnostics
    assert found.code == "R0404" and found.span is not None and found.span.text == "add(%x, %y)"


LAYOUT = 'layout_transform(%x, src_layout="NCHW", dst_layout="NCHW4c")'
ENLARGED = 'nn.upsampling(%x, scale_h=1.4, scale_w=2.6, layout="NCHW", method="bilinear")'


@pytest.mark.parametrize(
    "types, body, good, bad",
    [
        ("(?, ?, ?, ?)", LAYOUT, [(1, 8, 2, 3), (2, 4, 1, 1)], [(1, 6, 2, 3)]),
        ("(?, ?, ?, ?)", ENLARGED, [(1, 2, 5, 5), (3, 1, 2, 7)], []),
        ("(?, ?, ?, ?)", "vision.multibox_prior(%x, sizes=[0.3, 0.5], ratios=[1f, 2f], clip=True)", [(1, 3, 4, 5), (2, 1, 1, 7)], []),
        ("(?, ?), (?, ?)", "nn.cross_entropy(exp(%x), exp(%x1))", [((3, 5), (3, 5)), ((1, 1), (1, 1))], [((3, 5), (2, 5))]),
        ("(?, ?), (?, ?)", "nn.fifo_buffer(%x, %x1, axis=1)", [((2, 3), (2, 7)), ((4, 5), (4, 5))], [((2, 7), (2, 3))]),
        (
            "(?, ?, ?), (?, ?)",
            "matrix_set_diag(%x, %x1, k1=1, k2=1)",
            [((2, 4, 5), (2, 4)), ((1, 5, 3), (1, 2))],
            [((2, 4, 5), (2, 3))],
        ),
        ("(?, ?), (?, ?)", "slice_like(%x, %x1, axes=[0, 1])", [((4, 5), (4, 2)), ((3, 3), (1, 3))], [((2, 3), (3, 3))]),
        ("(?, ?), (?)", "stft(%x, %x1, n_fft=8, hop_length=3, win_length=8)", [((2, 30), (8,))], [((2, 30), (7,)), ((0, 30), (7,))]),
    ],
)
def test_extents_that_an_operator_refuses(types: str, body: str, good: list[Any], bad: list[Any]) -> None:
    """Code is made for the extents that it takes, whatever they are. It has the interpreter's errors for others."""
    declared = ", ".join(f"%x{n or ''}: Tensor[{ty}, float32]" for n, ty in enumerate(re.findall(r"\(.*?\)", types)))
    mod = module(f"def @main({declared}) {{ {body} }}")
    executable = loaded(mod)
    rng = np.random.default_rng(0)
    for shapes in (*good, *bad):
        given = [rng.standard_normal(shape).astype("float32") for shape in ([shapes] if isinstance(shapes[0], int) else shapes)]
        wanted, failure = outcome(lambda given=given: evaluate(mod, *given))
        value, code = outcome(lambda given=given: executable.run(*given))
        assert (code, failure is None) == (failure, shapes in good)
        if failure is None:
            np.testing.assert_allclose(value, wanted, rtol=1e-5, atol=1e-5)
            assert executable.fallbacks() == []


@pytest.mark.parametrize("boxes, count", [(0, 3), (0, 0), (4, 2)])
def test_boxes_that_are_counted(boxes: int, count: int) -> None:
    """More boxes than there are is an error, where there are none, too."""
    params = "%x: Tensor[(?, ?, 6), float32], %c: Tensor[(?), int32], %i: Tensor[(?, ?), int32], %m: int32, %t: float32"
    mod = module(f"def @main({params}) {{ vision.non_max_suppression(%x, %c, %i, %m, %t, return_indices=False) }}")
    given = [
        np.ones((2, boxes, 6), "float32"),
        np.full(2, count, "int32"),
        np.zeros((2, boxes), "int32"),
        np.int32(2),
        np.float32(0.5),
    ]
    wanted, failure = outcome(lambda: evaluate(mod, *given))
    value, code = outcome(lambda: compile_vm(mod).run(*given))
    assert code == failure and (failure is None) == (count <= boxes)
    if failure is None:
        assert_same(value, wanted)


@pytest.mark.parametrize("rows", [2, 4, 6])
def test_a_value_of_other_extents_than_a_kernel_takes(rows: int) -> None:
    """`?` may stand for any extent in a call: the kernel of the callee reads no more than there is."""
    mod = module("""
    def @f(%r: ref(Tensor[(4, 3), float32])) { exp(ref_read(%r)) }
    def @main(%x: Tensor[(?, 3), float32]) { @f(ref(%x)) }
    """)
    x = np.ones((rows, 3), "float32")
    for made in (compile_vm(mod), loads(compile_vm(mod).content())):
        if rows == 4:
            assert_same(made.run(x), evaluate(mod, x))
            continue
        with pytest.raises(RelayError) as caught:
            made.run(x)
        assert caught.value.diagnostics[0].code == "R0403" and caught.value.diagnostics[0].span is not None


@pytest.mark.parametrize(
    "pad",
    [
        'nn.pad(%x, 0f, pad_width=[[0, 0], [0, 2]], pad_mode="reflect")',
        'nn.pad(%x, 0f, pad_width=[[0, 0], [1, 2]], pad_mode="edge")',
        'nn.mirror_pad(%x, pad_width=[[0, 0], [2, 1]], mode="REFLECT")',
    ],
)
def test_an_axis_without_padding_may_have_one_element(pad: str) -> None:
    """Code that reflects an axis is for two elements at least; other axes have no such bound."""
    mod = module(f"def @main(%x: Tensor[(?, ?), float32]) {{ nn.relu({pad}) }}")
    executable = loaded(mod)
    for shape in ((1, 5), (3, 4)):
        assert_compiled(executable, mod, np.random.default_rng(0).standard_normal(shape).astype("float32"))


@pytest.mark.parametrize("axes", ["[-1]", "[0, 2]"])
def test_axes_that_squeeze_takes_away_must_be_1(axes: str) -> None:
    mod = module(f"def @main(%x: Tensor[(?, 4, ?), float32]) {{ tanh(squeeze(nn.relu(%x), axis={axes})) }}")
    executable = compile_vm(mod)
    assert_compiled(executable, mod, np.linspace(-1, 1, 4, dtype="float32").reshape(1, 4, 1))
    if axes == "[-1]":
        assert_compiled(executable, mod, np.linspace(-1, 1, 12, dtype="float32").reshape(3, 4, 1))
    wrong = np.ones((1, 4, 2), "float32")
    with pytest.raises(RelayError) as ours:
        executable.run(wrong)
    with pytest.raises(RelayError) as theirs:
        evaluate(mod, wrong)
    assert ours.value.diagnostics[0].title == theirs.value.diagnostics[0].title
    assert [f.why for f in executable.fallbacks()] == ["x0 (1, 4, 2): the code is for x0.shape[2] == 1"]


def test_a_call_among_others_says_why_it_has_no_code(monkeypatch: pytest.MonkeyPatch) -> None:
    real = kernels.sized

    def refusing(mod: IRModule, *others: Any) -> Any:
        if any(isinstance(node, Call) and node.op is get("tanh") for node in post_order(mod["main"].body)):
            raise RelayError(error("R0634", "tanh is refused"))
        return real(mod, *others)

    monkeypatch.setattr(kernels, "sized", refusing)
    mod = module("def @main(%x: Tensor[(?, ?), float32]) { nn.relu(tanh(nn.relu(%x))) }")
    executable = compile_vm(mod)
    x = np.ones((2, 3), "float32")
    assert_same(executable.run(x), evaluate(mod, x))
    assert [(f.calls, f.why) for f in executable.fallbacks()] == [(1, "tanh is refused")]


def test_results_of_few_and_of_many_tensors() -> None:
    """Tuples of scalars and tensors, some of them shared, come back whole on the short and on the long way."""
    for count in (1, 3, 15, 16, 40):
        fields = ", ".join(['%y, %n, cast(%n, dtype="bool"), %x'] * count)
        mod = module(f"def @main(%x: Tensor[(?, 2), float16], %n: int64) {{ let %y = nn.relu(%x); ({fields}) }}")
        x, n = np.array([[-1, 2], [3, -4]], "float16"), np.array(-(1 << 40))
        result, wanted = compile_vm(mod).run(x, n), evaluate(mod, x, n)
        assert_same(result, wanted)
        assert [np.asarray(v).dtype for v in result] == [np.asarray(v).dtype for v in wanted]
        assert result[0] is result[-4 if count > 1 else 0]


def test_a_computed_extent_that_squeeze_takes_away() -> None:
    """The extent is that of a convolution, whose channels come last for the kernel."""
    mod = module("""
def @main(%x: Tensor[(1, 4, ?), float32], %w: Tensor[(8, 4, 3), float32]) {
  squeeze(nn.relu(nn.conv1d(%x, %w, strides=[2], channels=8, kernel_size=[3])), axis=[2]) }
""")
    rng = np.random.default_rng(0)
    executable = loaded(mod)
    for length in (3, 4):
        assert_compiled(executable, mod, *(rng.standard_normal(s).astype("float32") for s in ((1, 4, length), (8, 4, 3))))
