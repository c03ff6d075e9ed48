"""Pages on dataflow patterns: R0520 to R0526."""

from __future__ import annotations

from relaylang.diagnostics.pages.page import Page

_MOD = 'mod = relay.parse("def @main(%x: Tensor[(2), float32]) { nn.relu(nn.relu(%x)) }")\n'
_PATTERN = "import relaylang as relay\nfrom relaylang.dataflow_pattern import DFPatternCallback, is_op, rewrite, wildcard\n"
_CALLBACK = """
class Twice(DFPatternCallback):
    def __init__(self):
        super().__init__()
        self.x = wildcard()
        self.pattern = is_op("nn.relu")(self.x)

    def callback(self, pre, post, node_map):
"""

PAGES = (
    Page(
        "R0520",
        "a pattern cannot be used",
        """A dataflow pattern is no pattern, refers to itself, or a callback does not have one: set `self.pattern` in
        `__init__`.""",
        _PATTERN + "from relaylang.ir import var\nclass Empty(DFPatternCallback):\n    def callback(self, pre, post, node_map):\n"
        '        return post\n\nrewrite(Empty(), var("x", shape=(2,)))',
        _PATTERN + _CALLBACK + "        return node_map[self.x][0]\n\n" + _MOD + 'rewrite(Twice(), mod["main"])',
        "python",
    ),
    Page(
        "R0521",
        "a callback returned no expression",
        """The callback of a rewrite must return an expression: `post` where nothing is to change.""",
        _PATTERN + _CALLBACK + "        pass\n\n" + _MOD + 'rewrite(Twice(), mod["main"])',
        _PATTERN + _CALLBACK + "        return post.args[0]\n\n" + _MOD + 'rewrite(Twice(), mod["main"])',
        "python",
    ),
    Page(
        "R0522",
        "a callback changed a type",
        """The new expression must have the type of the replaced one, because the rest of the program depends on it. Or
        the program was not well-typed before.""",
        "rewrite(Changing(), mod)    # nn.relu(x) becomes x cast to int8",
        "rewrite(Keeping(), mod)     # nn.relu(x) becomes x",
        "text",
    ),
    Page(
        "R0523",
        "rewriting does not end",
        """A callback's result matches its own pattern again and again. Match less, or rewrite once: `rewrite_once = True`.""",
        "rewrite(Wrap(), expr)       # f(x) becomes f(f(x))",
        "rewrite(WrapOnce(), expr)   # the same with rewrite_once=True",
        "text",
    ),
    Page(
        "R0524",
        "a pattern does not match",
        """`explain_match` (and `relay match --explain`) shows where the pattern and the program part. It is an answer, not a
        fault.""",
        "$ relay match 'nn.relu(nn.conv2d(_, _))' examples/mlp.relay --explain",
        "$ relay match 'nn.relu(_)' examples/mlp.relay",
        "text",
    ),
    Page(
        "R0525",
        "a pattern is not written right",
        """A pattern looks like the programs that it matches. `_` is any expression, `const` a constant, `...` any
        further arguments, `p?` an optional call. `relay match --help` has the list.""",
        "$ relay match 'nn.relu(' examples/mlp.relay",
        "$ relay match 'nn.relu(_)' examples/mlp.relay --count",
        "shell",
    ),
    Page(
        "R0526",
        "a match",
        """A note of `relay match`: the place where the pattern matches, and the parts of it.""",
        "$ relay match 'nn.relu(_)' examples/mlp.relay",
        "$ relay match 'nn.relu(_)' examples/mlp.relay --count",
        "text",
    ),
)
