"""Sizes beside numbers: what an expression of sizes says in C is what the same expression of numbers is."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from typing import Any

import pytest

from relaylang.backends.cpu.flatten import Calls
from relaylang.backends.cpu.isa import SCALAR
from relaylang.backends.vm.sized import sized
from relaylang.diagnostics import RelayError
from relaylang.kernels.sizes import Size, Sizes, bounds, largest, must_equal, number_of, step_of, surely_less, usual
from relaylang.syntax import parse
from relaylang.typing import check


def value_of(text: Any, numbers: list[int]) -> int:
    """The value of a size's C, or of a test of sizes. Its quotients are of numbers that are not negative."""
    said = re.sub(r"^!", "not ", str(text).replace(" / ", " // "))
    while "?" in said:  # the larger of two
        start = said.rindex("(", 0, said.rindex("?"))
        end = said.index(")", said.rindex(":"))
        test, _, rest = said[start + 1 : end].partition(" ? ")
        yes, _, no = rest.partition(" : ")
        said = f"{said[:start]}(({yes}) if ({test}) else ({no})){said[end + 1 :]}"
    return int(eval(said, {f"size{n}": number for n, number in enumerate(numbers)}))


@pytest.mark.parametrize("seed", range(40))
def test_arithmetic(seed: int) -> None:
    rng = random.Random(seed)
    numbers = [rng.randint(1, 60) for _ in range(3)]
    sizes = Sizes([11, 13, 17])
    pairs: list[tuple[int, int]] = list(zip(sizes.sizes, numbers))
    pairs += [(n, n) for n in (0, 1, 2, 3, 4, 16, -1)]
    for _ in range(40):
        (a, x), (b, y) = rng.choice(pairs), rng.choice(pairs)
        operation = rng.choice(["+", "-", "*", "//", "%"])
        try:
            if operation in ("//", "%"):
                if y <= 0:
                    continue
                made, wanted = (a // b, x // y) if operation == "//" else (a % b, x % y)
            else:
                made, wanted = {"+": (a + b, x + y), "-": (a - b, x - y), "*": (a * b, x * y)}[operation]
        except RelayError as refused:
            assert refused.diagnostics[0].code == "R0634"
            continue
        if not all(value_of(test, numbers) for test in sizes.assumed):
            sizes.begin()
            continue
        assert value_of(made, numbers) == wanted, (str(a), operation, str(b))
        low, high = bounds(made)
        assert (low is None or low <= wanted) and (high is None or wanted <= high)
        if surely_less(a, b):
            assert x < y
        if len(str(made)) < 60:
            pairs.append((made, wanted))


def test_simple_forms() -> None:
    n, m = Sizes([11, 13]).sizes
    assert [str(e) for e in (n * 12 // 4, (n * 12 + 5) // 4, n * m * 8 // (m * 2), n - 1 + 1)] == [
        "(size0 * 3)",
        "(size0 * 3 + 1)",
        "(size0 * 4)",
        "size0",
    ]
    assert (n * 12 + 5) % 4 == 1 and math.prod((n, 3, m)) == m * n * 3 and n - n == 0
    assert n > 0 and n * m >= m and not n == m and hash(n * m) == hash(m * n)
    assert value_of(largest(n, m), [3, 5]) == 5 and largest(n, 1) is n
    assert isinstance(n + 1, Size) and not isinstance(n * 0, Size)


def test_what_sizes_answer_in_two_ways_is_assumed() -> None:
    """The numbers answer, and the kernel checks it."""
    sizes = Sizes([11, 13])
    n, m = sizes.sizes
    assert n < m and n > 1 and bool(n - 1) and not n * 2 < m and n + 1 > 0
    assert list(sizes.assumed) == ["size0 < size1", "!(size0 < 2)", "(size0 + -1) != 0", "!((size0 * 2) < size1)"]
    sizes.begin()
    assert str((n - m) // 2) == "(((size0 * -1 + size1 + 1) / 2) * -1)" and list(sizes.assumed) == ["(size0 + size1 * -1) < 0"]


def test_what_cost_models_take_a_size_for() -> None:
    n, m = Sizes([11, 13]).sizes
    assert usual(n) == usual(m) > 1 and usual(n * m * 2) == 2 * usual(n) ** 2 and usual(n - 1000) == 1 and usual(7) == 7


def test_sizes_times_a_number_are_rounded() -> None:
    """A half goes to the even number, as Python rounds."""
    (n,) = Sizes([11]).sizes
    rounded = round(n * 1.5)
    assert (str(rounded), number_of(rounded), bounds(rounded)[0]) == ("((int64_t)rint(size0 * 1.5))", 16, 2)


def test_rests_are_taken_to_be_none() -> None:
    """The kernel checks it, whether it has elements or not."""
    sizes = Sizes([11])
    (n,) = sizes.sizes
    assert not n % 4
    assert must_equal(n, 8)
    assert list(sizes.assumed) == list(sizes.required) == ["((size0 % 4)) == 0", "size0 == 8"]


def test_the_number_of_a_size_is_refused() -> None:
    n, m = Sizes([11, 13]).sizes
    questions: list[Callable[[], Any]] = [
        lambda: int(n),
        lambda: float(n),
        lambda: n / 2,
        lambda: int(n * 0.5),
        lambda: n * 0.5 + 1,
        lambda: n // (n - m),
    ]
    for ask in questions:
        with pytest.raises(RelayError, match="not known before the program runs"):
            ask()


def test_extents_that_broadcast() -> None:
    """The result is the same whatever the order, and its text does not grow with the broadcasts."""
    sizes = Sizes([11, 13, 17], broadcasting=True)
    n, m, k = sizes.sizes
    assert n.broadcast(m) is None, "only some calls let extents yield"
    sizes.may_yield = True
    wide = n.broadcast(m)
    assert isinstance(wide, Size) and wide == m.broadcast(n) == wide.broadcast(n)
    every = wide.broadcast(k)
    assert isinstance(every, Size) and every == k.broadcast(m).broadcast(n)  # type: ignore[union-attr]
    assert str(every).count("size") == 3
    for numbers in ((1, 1, 1), (5, 1, 1), (1, 5, 5), (1, 1, 8), (0, 1, 0), (4, 4, 4)):
        assert value_of(every, numbers) == next((x for x in numbers if x != 1), 1)
        steps = [value_of(step_of(own, every), numbers) for own in (n, m, k)]
        assert steps == [int(x > 1) for x in numbers]
    assert step_of(every, every) == step_of(n, n) == step_of(7, n) == 1 and step_of(1, n) == 0
    assert n.broadcast(8) == 8 and "(size0 == 8 || size0 == 1)" in sizes.assumed
    assert (n + 1).broadcast(m) == n + 1 and (n + 1).broadcast(m + 1) is None  # type: ignore[attr-defined]


def test_a_chain_of_broadcasts_has_a_short_text() -> None:
    sizes = Sizes(range(100, 124), broadcasting=True)
    sizes.may_yield = True
    wide = sizes.sizes[0]
    for _ in range(3):
        for size in sizes.sizes:
            wide = wide if wide == size else wide.broadcast(size)  # type: ignore[assignment]
    assert len(str(wide)) < 24 * 20 and max(map(len, sizes.assumed)) < 3 * 24 * 20


def test_extents_that_must_be_equal_are_taken_to_be() -> None:
    sizes = Sizes([11, 13])
    n, m = sizes.sizes
    sizes.inferring = True
    assert n == m and m == 4 and n != 1 and n != n + 1 and not n * 4 % 3
    assert list(sizes.equal) == [("size0", "size1"), ("size1", "4"), ("(((size0 * 4) % 3))", "0")]


def test_shapes_of_different_ranks_broadcast_without_an_assumption() -> None:
    mod = parse('#[version = "0.0.5"]\ndef @main(%x: Tensor[(?, 5), float32], %y: Tensor[(5), float32]) { (add(%x, %y),) }').module
    assert mod is not None and not check(mod)
    made = sized(mod, SCALAR, Calls())
    assert made is not None and made.checks == ("size0 >= 1",) and made.extents == ("size0", "5")
