"""Pages on types: R03xx."""

from __future__ import annotations

from relaylang.diagnostics.pages.page import Page

_LIST = "type List[A] {\n  Cons(A, List[A]),\n  Nil,\n}\n\n"

PAGES = (
    Page(
        "R0301",
        "an operator does not accept its arguments",
        """The type relation of the operator does not hold for its arguments. Shapes do not broadcast, element types
        differ, or a weight does not fit its data. The message names the argument and the extent; the labels show
        where each argument got its type.""",
        "def @main(%x: Tensor[(1, 8), float32], %w: Tensor[(4, 7), float32]) {\n  nn.dense(%x, %w, units=4)\n}",
        "def @main(%x: Tensor[(1, 8), float32], %w: Tensor[(4, 8), float32]) {\n  nn.dense(%x, %w, units=4)\n}",
    ),
    Page(
        "R0302",
        "two types differ",
        """A value has one type, and its place needs another one. The types of both branches must agree, and so must
        those of body and result, argument and parameter. There are no conversions in silence; `cast` makes another
        element type.""",
        "def @main(%x: int32) -> float32 {\n  %x\n}",
        'def @main(%x: int32) -> float32 {\n  cast(%x, dtype="float32")\n}',
    ),
    Page(
        "R0303",
        "a wrong number of arguments",
        """A call gives more or fewer arguments than the operator, function or constructor takes. Several tensors for one
        argument, as in `concatenate`, stand in a tuple.""",
        "def @main(%a: Tensor[(2), float32], %b: Tensor[(2), float32]) {\n  concatenate(%a, %b, axis=0)\n}",
        "def @main(%a: Tensor[(2), float32], %b: Tensor[(2), float32]) {\n  concatenate((%a, %b), axis=0)\n}",
    ),
    Page(
        "R0304",
        "a type is not known",
        """Nothing in the program says what the type is. State it behind the variable, `%x: Tensor[(1, 3), float32]`, or behind
        the function's parameters, `-> float32`.""",
        "def @main(%x) {\n  %x\n}",
        "def @main(%x: Tensor[(1, 3), float32]) {\n  %x\n}",
    ),
    Page(
        "R0305",
        "the called value is not a function",
        """The expression in front of the arguments is not a function. Or an operator stands alone, as if it were a
        value. To hand an operator on, wrap it: `fn (%a) { nn.relu(%a) }`.""",
        "def @main(%x: int32) {\n  %x(1)\n}",
        "def @main(%f: fn (int32) -> int32) {\n  %f(1)\n}",
    ),
    Page(
        "R0306",
        "not a field of a tuple",
        """A field is taken of a value that is not a tuple, or the tuple has fewer fields. Fields are counted from 0.""",
        "def @main(%t: (int32, float32)) {\n  %t.2\n}",
        "def @main(%t: (int32, float32)) {\n  %t.1\n}",
    ),
    Page(
        "R0307",
        "a condition is not a truth value",
        """The condition of an `if` must be a scalar of type bool. Compare a number to make one; reduce a tensor with `all` or
        `any`.""",
        "def @main(%n: int32) {\n  if (%n) { 1 } else { 2 }\n}",
        "def @main(%n: int32) {\n  if (%n != 0) { 1 } else { 2 }\n}",
    ),
    Page(
        "R0308",
        "a match does not cover every value",
        """A `match` must have a clause for every value; the message shows one that has none. Add a clause, `_ => ...` for all
        others, or write `match?` to say that the others do not occur.""",
        _LIST + "def @main(%l: List[int32]) {\n  match (%l) {\n    Cons(%h, _) => %h,\n  }\n}",
        _LIST + "def @main(%l: List[int32]) {\n  match (%l) {\n    Cons(%h, _) => %h,\n    Nil => 0,\n  }\n}",
    ),
    Page(
        "R0309",
        "a pattern does not fit the matched value",
        """A pattern takes apart another type than that of the matched value. It has a constructor of another type, or
        a tuple of another length.""",
        "def @main(%t: (int32, int32)) {\n  match (%t) {\n    (%a, %b, %c) => %a,\n  }\n}",
        "def @main(%t: (int32, int32)) {\n  match (%t) {\n    (%a, %b) => %a,\n  }\n}",
    ),
    Page(
        "R0310",
        "a type would contain itself",
        """The types agree only if one of them is a part of itself. A function that takes itself as argument is an
        example. Define a type (`type T { ... }`) where a recursive one is wanted.""",
        "def @main() {\n  fn (%f) { %f(%f) }\n}",
        "def @main() {\n  fn (%f: fn (int32) -> int32) { %f(1) }\n}",
    ),
    Page(
        "R0311",
        "a type is not well formed",
        """A type is used with a wrong number of type arguments, or its arguments are of another kind.""",
        _LIST + "def @main(%l: List[int32, int32]) {\n  %l\n}",
        _LIST + "def @main(%l: List[int32]) {\n  %l\n}",
    ),
    Page(
        "R0312",
        "a name has no definition",
        """A program made from Python uses a function, type or constructor that its module does not have. (In a text this is
        R0206 or R0207.)""",
        """
import relaylang as relay
f = relay.Function([], relay.Call(relay.GlobalVar("helper"), []))
relay.transform.InferType()(relay.IRModule.from_expr(f))
""",
        """
import relaylang as relay
helper = relay.GlobalVar("helper")
mod = relay.IRModule({helper: relay.Function([], relay.const(1.0))})
mod["main"] = relay.Function([], relay.Call(helper, []))
relay.transform.InferType()(mod)
""",
        "python",
    ),
    Page(
        "R0313",
        "not a reference",
        """`ref_read` and `ref_write` take what `ref` made.""",
        "def @main(%x: int32) {\n  ref_read(%x)\n}",
        "def @main(%x: int32) {\n  ref_read(ref(%x))\n}",
    ),
    Page(
        "R0314",
        "a variable is used before it has a value",
        """In a program made from Python a `let`'s value, which is no function, uses the variable that it binds. (In a text this
        is R0209.)""",
        """
import relaylang as relay
from relaylang.ops import get
x = relay.var("x")
relay.transform.InferType()(relay.IRModule.from_expr(relay.Let(x, relay.Call(get('add'), [x, relay.const(1.0)]), x)))
""",
        """
import relaylang as relay
x = relay.var("x")
relay.transform.InferType()(relay.IRModule.from_expr(relay.Let(x, relay.const(1.0), x)))
""",
        "python",
    ),
    Page(
        "R0315",
        "types that are left open",
        """A note. Free variables or missing constants of a fragment have no type. The checker checks the calls that
        depend on them as far as it can. Declare them: `free_var %x: Tensor[(1, 3), float32];`.""",
        "nn.relu(%x)",
        "free_var %x: Tensor[(1, 3), float32];\nnn.relu(%x)",
    ),
    Page(
        "R0316",
        "a name is bound twice",
        """A program from Python binds a name twice. One variable is two parameters, or a type has two parameters or
        constructors of one name. (In a text this is R0205.)""",
        """
import relaylang as relay
x = relay.var("x", shape=(2,))
relay.transform.InferType()(relay.IRModule.from_expr(relay.Function([x, x], x)))
""",
        """
import relaylang as relay
x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
relay.transform.InferType()(relay.IRModule.from_expr(relay.Function([x, y], x)))
""",
        "python",
    ),
)
