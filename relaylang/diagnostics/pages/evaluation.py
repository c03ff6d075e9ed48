"""Pages on evaluation: R04xx."""

from __future__ import annotations

from relaylang.diagnostics.pages.page import Page

_EVALUATE = "import numpy as np\nimport relaylang as relay\n"
_REFS = 'mod = relay.parse("def @main(%x: Tensor[(2), float32]) { nn.relu(%x) }")\n'

PAGES = (
    Page(
        "R0401",
        "wrong number of arguments",
        """A call has more or fewer arguments than the function has parameters. Or it gives an argument twice, or under
        an unknown name.""",
        _EVALUATE + _REFS + 'relay.create_executor("debug", mod).evaluate()()',
        _EVALUATE + _REFS + 'relay.create_executor("debug", mod).evaluate()(np.ones(2, np.float32))',
        "python",
    ),
    Page(
        "R0402",
        "an argument does not have its parameter's type",
        """An array has another shape or element type than the parameter. numpy's default is float64: write
        `x.astype("float32")`.""",
        _EVALUATE + _REFS + 'relay.create_executor("debug", mod).evaluate()(np.ones(2))',
        _EVALUATE + _REFS + 'relay.create_executor("debug", mod).evaluate()(np.ones(2, np.float32))',
        "python",
    ),
    Page(
        "R0403",
        "a value is missing",
        """The program uses a variable, a constant of the metadata section or a function that nobody gave a value.""",
        _EVALUATE + 'relay.create_executor("debug").evaluate(relay.var("x", shape=(2,)))',
        _EVALUATE + 'relay.create_executor("debug").evaluate(relay.const(1.0))',
        "python",
    ),
    Page(
        "R0404",
        "an operator cannot be computed",
        """An operator met values for which it has no result. Examples are a division of whole numbers by zero, and an
        index or a shape out of bounds. The labels show the call, the notes its operands.""",
        "def @main() {\n  divide(1, 0)\n}",
        "def @main() {\n  divide(1, 2)\n}",
        "run",
    ),
    Page(
        "R0405",
        "no clause of a match fits",
        """A `match?`, which need not cover every value, met one that it does not cover.""",
        "type Num { One, Two }\n\ndef @main() {\n  match? (Two()) {\n    One() => 1,\n  }\n}",
        "type Num { One, Two }\n\ndef @main() {\n  match (Two()) {\n    One() => 1,\n    Two() => 2,\n  }\n}",
        "run",
    ),
    Page(
        "R0406",
        "no kernel for an operator",
        """The interpreter cannot compute this operator. Replace it by operators that it has.""",
        "$ relay run examples/own_operator.relay",
        "$ relay run examples/mlp.relay --random-params 0",
        "text",
    ),
    Page(
        "R0407",
        "not a function",
        """Only a function takes arguments, and this value is not one.""",
        """
from relaylang.interpreter import evaluate
from relaylang.ir import const
evaluate(const(1.0))()
""",
        """
from relaylang.interpreter import evaluate
from relaylang.ir import const
evaluate(const(1.0))
""",
        "text",
    ),
    Page(
        "R0408",
        "out of memory",
        """The program needs more memory than the machine has, or than `--memory-limit` allows. A tensor is too large,
        or a recursion does not end.""",
        "$ relay run endless.relay --memory-limit 300M",
        "$ relay run examples/loop.relay",
        "text",
    ),
    Page(
        "R0409",
        "a function without a body",
        """An external function (`def @f = meta[...]`, or code for an accelerator) is called in the interpreter, which knows its
        name only. Compile the program for its target.""",
        "def @g = meta[relay.Function][0]\n\ndef @main() {\n  @g()\n}",
        "def @g() {\n  1\n}\n\ndef @main() {\n  @g()\n}",
        "text",
    ),
    Page(
        "R0411",
        "a reference is read before it is written",
        """A `let` that binds a recursive value read a reference that has no value yet.""",
        "def @main() {\n  let %r = ref(ref_read(%r));\n  %r\n}",
        "def @main() {\n  let %r = ref(1);\n  ref_read(%r)\n}",
        "text",
    ),
    Page(
        "R0412",
        "a value that is not finite comes from values that are",
        """A warning of `--watch-nan`. A call gives NaN or infinity, and all its operands are finite. Such values come
        from this place: a logarithm of 0, a division by 0, an overflow.""",
        "$ relay run log_of_zero.relay --watch-nan",
        "$ relay run examples/loop.relay --watch-nan",
        "shell",
    ),
    Page(
        "R0413",
        "out of time",
        """The program takes longer than `--time-limit` allows. A loop or a recursion may have no end; the place and the
        calls say where it was. Compiled code without a VM cannot be stopped: the process ends, and the error has no place.""",
        "$ relay run endless_loop.relay --input n=0 --time-limit 50ms",
        "$ relay run examples/loop.relay --time-limit 1h",
        "text",
    ),
    Page(
        "R0414",
        "a result does not have its declared type",
        """The checker takes `?` for every extent. When the program runs, the result must have the extents that the
        function declares. Declare `?` where the extent depends on values.""",
        'def @main() -> Tensor[(3), int32] {\n  arange(0, 4, 1, start=0, stop=4, step=1, dtype="int32")\n}',
        'def @main() -> Tensor[(?), int32] {\n  arange(0, 4, 1, start=0, stop=4, step=1, dtype="int32")\n}',
        "run",
    ),
)
