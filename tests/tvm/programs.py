"""Programs as Python that means the same with TVM's `relay` and ours; `programs.json` has what TVM saves of them. No imports."""

#: Built by Python, without types: TVM saves them without places.
BUILT = {
    "attributes": """
x = relay.var("x", shape=(2,))
made = relay.Function([x], relay.nn.softmax(x, axis=1)).with_attr("Compiler", "npu").with_attr("__params__", {x: relay.const(1)})
""",
    "control": """
c, x = relay.var("c", "bool"), relay.var("x", relay.TensorType((relay.Any(), 3), "int8"))
r = relay.var("r")
body = relay.Let(r, relay.RefCreate(x), relay.If(c, relay.RefRead(r), relay.TupleGetItem(relay.Tuple([x, relay.RefWrite(r, x)]), 0)))
made = relay.Function([c, x], body, relay.TensorType((relay.Any(), 3), "int8"))
""",
    "types": """
a = relay.TypeVar("A")
f = relay.GlobalTypeVar("F")
made = relay.FuncType([a, relay.TupleType([relay.RefType(a), f(a)])], relay.TensorType((), "float32"), [a], [])
""",
    "data": """
a = relay.TypeVar("A")
box = relay.GlobalTypeVar("Box")
con = relay.Constructor("Box", [a], box)
mod = tvm.IRModule()
mod[box] = relay.TypeData(box, [a], [con])
x, y = relay.var("x"), relay.var("y")
pattern = relay.PatternConstructor(con, [relay.PatternVar(y)])
arms = [relay.Clause(pattern, y), relay.Clause(relay.PatternTuple([relay.PatternWildcard()]), x)]
made = relay.Match(con(x), arms, complete=False)
""",
    "conv": """
x, w = relay.var("x", shape=(1, 3, 8, 8)), relay.var("w", shape=(4, 3, 3, 3))
made = relay.nn.conv2d(x, w, padding=(1, 1), kernel_size=(3, 3))
""",
    "empty": """
made = tvm.IRModule({})
""",
}

#: A text that TVM reads and saves with types and places.
TYPED = """#[version = "0.0.5"]
type L[A] { C(A, L[A]), N, }
def @f[A](%l: L[A], %v: A, foo=1, g="x") -> int32 { match (%l) { C(%a, N) => 1, _ => 2, } }
def @main(%x: Tensor[(2, ?), float32], %w: Tensor[(10,10,3,3),float32]) {
  let %r = ref(%x);
  let %g = fn (%y: Tensor[(2, ?), float32]) { ref_write(%r, %y); if (True) { ref_read(%r) } else { %y } };
  let %z = (%g(%x), 2f);
  (%z.0, @f(N, 1), nn.conv2d(zeros(shape=[1,10,5,5], dtype="float32"), %w))
}
"""
