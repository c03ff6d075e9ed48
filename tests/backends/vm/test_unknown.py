"""Kernels for unknown extents: compiled code beside the interpreter, from the first run of a loaded file on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relaylang.backends.cpu.dtypes import CTYPES
from relaylang.backends.vm import compile_vm
from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.ir import Call, Function, GlobalVar, IRModule
from relaylang.ir.binding import bind_params
from relaylang.rules.slices import RULES
from relaylang.runtime.vm.executable import VMExecutable, loads
from relaylang.typing import check
from tests.backends.vm.agree import assert_same, outcome
from tests.backends.vm.test_programs import module
from tests.consistency.calls import Made, bases
from tests.consistency.compiled import difference
from tests.consistency.sliced import function, several, tensors, ways
from tests.shared import few


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
    assert (ours.code, ours.title) == (theirs.code, theirs.title)
    assert ours.span is not None and "max_pool2d" in ours.span.text


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


def _calls(shard: int, shards: int) -> list[tuple[Made, tuple[bool, ...], Function]]:
    """For each operator with a rule, two calls that it allows to slice."""
    found: list[tuple[Made, tuple[bool, ...], Function]] = []
    count: dict[str, int] = {}
    for made in bases():
        if made[0] not in RULES or len(made[0]) % shards != shard or count.get(made[0], 0) >= 2:
            continue
        if any(x.dtype.name not in CTYPES for a in made[2] for x in tensors(a)):
            continue
        for along in ways(made[2]):
            call = function(made, along)
            if call is not None and isinstance(call.body, Call) and RULES[made[0]](call.body, along):
                found.append((made, along, call))
                count[made[0]] = count.get(made[0], 0) + 1
                break
    return found


@pytest.mark.parametrize("shard", few(range(5)))
def test_slices_of_every_operator(shard: int) -> None:
    calls = _calls(shard, 5)
    mod = IRModule({GlobalVar(f"f{n}"): call for n, (_, _, call) in enumerate(calls)})
    check(mod)
    made = compile_vm(mod, "c -num-threads=1 -cflags=-O1", entries=[f"f{n}" for n in range(len(calls))])
    wrong: dict[str, str] = {}
    for n, ((name, attrs, args), along, call) in enumerate(calls):
        inputs = [several(x, sliced) for a, sliced in zip(args, along) for x in tensors(a)]
        sliced = [s for a, s in zip(args, along) for _ in tensors(a)]
        for count in (0, 1, 2):
            given = [x[:count] if s else x for x, s in zip(inputs, sliced)]
            wanted, failure = outcome(lambda given=given, call=call: evaluate(call, *given))
            got, code = outcome(lambda given=given, n=n: made.call(f"f{n}", tuple(given)))
            said = f"{code} in place of {failure}" if code != failure else None
            if said is None and failure is None:
                said = difference(name, got, wanted, given)
            if said is not None:
                wrong[f"{name} {attrs} {along} of {count}"] = said
    assert wrong == {}
