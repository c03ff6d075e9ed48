"""Pages on lints: R10xx. `relay check --lint` warns of these; the programs are right."""

from __future__ import annotations

from relaylang.diagnostics.pages.page import Page

_T = "Tensor[(2, 3), float32]"

PAGES = (
    Page(
        "R1001",
        "a variable is not used",
        """Nothing reads this variable. Remove the binding, or write `_` for a part of a pattern. A name that begins with
        `_` says that it is not used. Bindings whose values have effects are left alone.""",
        f"def @main(%x: {_T}) {{\n  let %y = exp(%x);\n  nn.relu(%x)\n}}",
        f"def @main(%x: {_T}) {{\n  nn.relu(%x)\n}}",
        "lint",
    ),
    Page(
        "R1002",
        "a parameter is not used",
        """The function's body does not read this parameter. Remove it, or begin its name with `_`. Parameters of @main
        are left alone.""",
        f"def @f(%x: {_T}, %y: {_T}) {{ nn.relu(%x) }}\ndef @main(%x: {_T}) {{ @f(%x, %x) }}",
        f"def @f(%x: {_T}) {{ nn.relu(%x) }}\ndef @main(%x: {_T}) {{ @f(%x) }}",
        "lint",
    ),
    Page(
        "R1003",
        "a function is not used",
        """The module has a @main, and @main does not reach this function. Remove it, or begin its name with `_`.""",
        f"def @old(%x: {_T}) {{ exp(%x) }}\ndef @main(%x: {_T}) {{ nn.relu(%x) }}",
        f"def @main(%x: {_T}) {{ nn.relu(%x) }}",
        "lint",
    ),
    Page(
        "R1004",
        "a variable hides another one",
        """Two variables have one name, and the inner one hides the outer one. A reader may take one for the other: give
        the inner one a name of its own.""",
        f"def @main(%x: {_T}) {{\n  let %f = fn (%x: {_T}) {{ exp(%x) }};\n  %f(%x)\n}}",
        f"def @main(%x: {_T}) {{\n  let %f = fn (%y: {_T}) {{ exp(%y) }};\n  %f(%x)\n}}",
        "lint",
    ),
    Page(
        "R1005",
        "no value reaches a clause",
        """The clauses above take every value that this clause would take. Remove it, or move it up.""",
        "type Color { Red, Green }\ndef @main(%c: Color) {\n  match (%c) { Red => 1, _ => 2, Green => 3 }\n}",
        "type Color { Red, Green }\ndef @main(%c: Color) {\n  match (%c) { Red => 1, Green => 3 }\n}",
        "lint",
    ),
    Page(
        "R1006",
        "a condition never changes",
        """The condition of an `if` is made of constants, so one branch never runs. Leave the `if` out.""",
        f"def @main(%x: {_T}) {{ if (less(1, 2)) {{ exp(%x) }} else {{ %x }} }}",
        f"def @main(%x: {_T}) {{ exp(%x) }}",
        "lint",
    ),
    Page(
        "R1007",
        "a call changes nothing",
        """The call gives what it gets. An example is a cast to the operand's own type, another one a requantize to the
        same scale. Leave it out.""",
        f'def @main(%x: {_T}) {{ nn.relu(cast(%x, dtype="float32")) }}',
        f"def @main(%x: {_T}) {{ nn.relu(%x) }}",
        "lint",
    ),
    Page(
        "R1008",
        "two calls cancel",
        """The second call gives back what the first one got. So do two transpositions, or a cast to a wider type and
        back. Leave both out.""",
        f"def @main(%x: {_T}) {{ exp(transpose(transpose(%x, axes=[1, 0]), axes=[1, 0])) }}",
        f"def @main(%x: {_T}) {{ exp(%x) }}",
        "lint",
    ),
    Page(
        "R1009",
        "a call is written twice",
        """Two calls have the same operands and attributes. Bind the first result to a name and use it twice. The pass
        EliminateCommonSubexpr does so for a whole program.""",
        f"def @main(%x: {_T}) {{ add(exp(%x), negative(exp(%x))) }}",
        f"def @main(%x: {_T}) {{\n  let %e = exp(%x);\n  add(%e, negative(%e))\n}}",
        "lint",
    ),
    Page(
        "R1010",
        "a float64 constant stands in a float32 program",
        """All tensors of the program are float32, and this number is float64. A number without a suffix is float32;
        f64 makes it float64.""",
        f'def @main(%x: {_T}) {{ multiply(%x, cast(2f64, dtype="float32")) }}',
        f"def @main(%x: {_T}) {{ multiply(%x, 2f) }}",
        "lint",
    ),
    Page(
        "R1011",
        "a number does not fit its element type",
        """The result of arithmetic on constants is greater or less than its element type allows, and wraps around. Take a
        wider type.""",
        "def @main(%n: int32) { add(%n, multiply(100000, 100000)) }",
        'def @main(%n: int32) { add(cast(%n, dtype="int64"), 10000000000i64) }',
        "lint",
    ),
    Page(
        "R1012",
        "a comment silences nothing",
        """A comment `relay: ignore` names a lint that has no finding in its line, or the code of no lint. Remove the
        code. The comment counts for its own line, and for the next line where it stands alone.""",
        f"def @main(%x: {_T}) {{\n  exp(%x)  // relay: ignore[R1007]\n}}",
        f"def @main(%x: {_T}) {{\n  exp(%x)\n}}",
        "lint",
    ),
    Page(
        "R1013",
        "a misspelt attribute of a function",
        """Functions may have attributes of any name, and this name is nearly that of an attribute with a meaning. As it
        is, nothing reads it.""",
        f"def @main(%x: {_T}) {{\n  let %f = fn (%y: {_T}, Primitve=1) {{ exp(%y) }};\n  %f(%x)\n}}",
        f"def @main(%x: {_T}) {{\n  let %f = fn (%y: {_T}, Primitive=1) {{ exp(%y) }};\n  %f(%x)\n}}",
        "lint",
    ),
    Page(
        "R1014",
        "mixed element types",
        """A product multiplies floats with other numbers, or a condition is not bool. relaylang computes it; TVM's
        kernels may not. Cast one of the tensors, or compare the condition with zero.""",
        f'def @main(%x: {_T}) {{ nn.dense(%x, cast(%x, dtype="float16"), units=2) }}',
        f"def @main(%x: {_T}) {{ nn.dense(%x, %x, units=2) }}",
        "lint",
    ),
)
