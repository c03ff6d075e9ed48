"""Pages on the text's form: R01xx."""

from __future__ import annotations

from relaylang.diagnostics.pages.page import Page

PAGES = (
    Page(
        "R0101",
        "unexpected token",
        """Something stands where it cannot. The message names the tokens that fit, or the likely one. Often the cause
        is just in front of the place that is shown.""",
        "def @main(%x: int32) {\n  if (%x = 1) { 1 } else { 2 }\n}",
        "def @main(%x: int32) {\n  if (%x == 1) { 1 } else { 2 }\n}",
    ),
    Page(
        "R0102",
        "something is never closed",
        """A bracket, a string, a comment or the version header is opened and never closed. Where the indentation shows which
        block it is, that one is named; else the innermost one.""",
        "def @main(%x: int32) {\n  add(%x, 1\n}",
        "def @main(%x: int32) {\n  add(%x, 1)\n}",
    ),
    Page(
        "R0103",
        "not an expression",
        """A string stands where a value is wanted. Relay computes with tensors, tuples, functions, references and values of
        algebraic types; strings are values of attributes only.""",
        'add("1", 2)',
        "add(1, 2)",
    ),
    Page(
        "R0104",
        "a block without a value",
        """The body of a function, a branch and a clause are blocks. The value of a block is the expression at its end.
        This one is empty or ends with a binding.""",
        "def @main(%x: int32) {\n  let %y = add(%x, 1);\n}",
        "def @main(%x: int32) {\n  let %y = add(%x, 1);\n  %y\n}",
    ),
    Page(
        "R0105",
        "not a number of its type",
        """A number does not fit its type, rounds to zero or infinity, or has an unknown suffix. The suffixes are i8 to
        i64, u8 to u64, f (float32), f16, f32, f64 and bf16. Without a suffix a whole number is an int32, or an
        int64 where it does not fit. Numbers never wrap around.""",
        "add(100u8, 300u8)",
        "add(100u16, 300u16)",
    ),
    Page(
        "R0106",
        "the text is empty",
        """The text holds comments and white space only. A module without definitions is written with its header.""",
        "// nothing yet",
        '#[version = "0.0.5"]',
    ),
    Page(
        "R0107",
        "not a type",
        """A type has another form. A tensor's type is `Tensor[(2, 3), float32]`: the extents in parentheses (`?` for
        one that is not known), then the element type. A scalar is `float32` or `Tensor[(), float32]`. Element types
        are bool, int8 to int64, uint8 to uint64, float16 to float64, bfloat16 and some others.""",
        "def @main(%x: Tensor[2, 3, float32]) {\n  %x\n}",
        "def @main(%x: Tensor[(2, 3), float32]) {\n  %x\n}",
    ),
    Page(
        "R0109",
        "an attribute's value does not fit",
        """An attribute has a value of the wrong kind. Examples are a string for a number, a fraction for a whole
        number, and an unknown word. A string needs its quotes.""",
        "nn.softmax(%x, axis=1.5)",
        "nn.softmax(%x, axis=1)",
    ),
    Page(
        "R0110",
        "more than one thing where one is wanted",
        """`parse_expr` reads one expression, and the text holds definitions. `parse` or `fromtext` read those.""",
        'import relaylang as relay\nrelay.parse_expr("def @main() { 1 }")',
        'import relaylang as relay\nrelay.parse("def @main() { 1 }")',
        "python",
    ),
    Page(
        "R0111",
        "another language",
        """The text is not Relay: it is TVMScript or other Python, MLIR, JSON, or another framework's text. relaylang reads what
        TVM 0.6 to 0.19 printed with `mod.astext()`. Relax and TensorIR have no Relay text.""",
        '@R.function\ndef main(x: R.Tensor((1, 3), "float32")):\n    return x',
        "def @main(%x: Tensor[(1, 3), float32]) -> Tensor[(1, 3), float32] {\n  %x\n}",
    ),
    Page(
        "R0112",
        "something is missing",
        """A separator, a bracket or a word is missing. It may be a `,` between arguments, a `;` behind a binding, or
        an `else`. It may also be the `{ }` around a branch or the parentheses around a condition. The suggestion
        shows where it goes.""",
        "def @main(%x: int32, %y: int32) {\n  add(%x %y)\n}",
        "def @main(%x: int32, %y: int32) {\n  add(%x, %y)\n}",
    ),
    Page(
        "R0113",
        "an operator that Relay does not have",
        """Relay has the infix operators `* / + - < <= > >= == !=`. Everything else is a call, such as `logical_and(a, b)` for
        `a && b`, `power(a, b)` for `a ** b`, `left_shift(a, b)` for `a << b`.""",
        "def @main(%a: bool, %b: bool) {\n  %a && %b\n}",
        "def @main(%a: bool, %b: bool) {\n  logical_and(%a, %b)\n}",
    ),
    Page(
        "R0114",
        "a name without its sign",
        """Variables begin with `%`, functions with `@`. A bare name is an operator, a constructor, a type or an attribute.""",
        "def @main(x: int32) {\n  1\n}",
        "def @main(%x: int32) {\n  %x\n}",
    ),
    Page(
        "R0150",
        "no version header of TVM",
        """A note. Texts of TVM begin with `#[version = "0.0.5"]`, and TVM refuses those that do not; relaylang reads them.
        A misspelt header is a comment, and a version that no TVM wrote is read as 0.0.5. `relay print` and `relay fmt`
        write the header.""",
        "def @main() {\n  1\n}",
        '#[version = "0.0.5"]\ndef @main() {\n  1\n}',
    ),
    Page(
        "R0151",
        "values are missing from the text",
        """A note. The program refers to constants by `meta[relay.Constant][0]`, and the text has no metadata section
        with their values. `show_meta_data=False` prints such texts. Their types are taken from the comments behind
        them. As an error: the kind of the value is misspelt. To run the program give them values: `--params`,
        `--random-params`, or `--input 'meta[relay.Constant][0]=w.npy'`.""",
        "add(1f, meta[relay.Constant][0] /* ty=Tensor[(2), float32] */)",
        "add(1f, 2f)",
    ),
    Page(
        "R0152",
        "a call as an older TVM wrote it",
        """A note. Operators changed their names, arguments and attributes between TVM 0.6 and 0.16. relaylang reads
        the call as that version wrote it, with the same meaning. Some calls are read as the builder in Python takes them.
        The language reference has the table. `relay fmt` and `relay print` write today's call. As an error: `relay fmt`
        has no short form for the call, and `relay print` writes a longer one.""",
        "scatter(%x, %i, %u)",
        "scatter_elements(%x, %i, %u)",
    ),
    Page(
        "R0153",
        "a type alone in parentheses",
        """A note. `(T)` is the type of a tuple of one field, as in TVM. Parentheses in a type never only group.
        `(T,)` says the same without doubt, and `relay fmt` writes it. For the type itself, leave the parentheses out.
        In texts of TVM 0.6 and older, whose header is `v0.0.4`, parentheses group.""",
        "fn (%x: (int32)) { %x }",
        "fn (%x: int32) { %x }",
    ),
)
