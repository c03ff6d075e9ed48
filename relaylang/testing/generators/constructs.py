"""Types for random programs (`typed`), and the data types and polymorphic functions that such programs use."""

from __future__ import annotations

from dataclasses import dataclass

INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64")


@dataclass(frozen=True)
class Ty:
    """A type. `parts` are a tensor's extents, fields, a function's result and parameters, or arguments.

    `name` is an element type, the name of a data type, or that of a type parameter (the kind `var`).
    """

    kind: str
    name: str = ""
    parts: tuple = ()  # type: ignore[type-arg]

    def __str__(self) -> str:
        inner = [str(p) for p in self.parts]
        match self.kind:
            case "tensor":
                return f"Tensor[({', '.join(inner)}{',' * (len(inner) == 1)}), {self.name}]" if inner else self.name
            case "tuple":
                return f"({', '.join(inner)}{',' * (len(inner) == 1)})"
            case "fn":
                return f"fn ({', '.join(inner[1:])}) -> {inner[0]}"
            case "ref":
                return f"ref({inner[0]})"
            case "data":
                return f"{self.name}[{', '.join(inner)}]" if inner else self.name
        return self.name

    def filled(self, values: dict[str, Ty]) -> Ty:
        """The type with types for its parameters."""
        if self.kind == "var":
            return values.get(self.name, self)
        if self.kind == "tensor":
            return self
        return Ty(self.kind, self.name, tuple([p.filled(values) for p in self.parts]))


def tensor(dtype: str, *extents: int | str) -> Ty:
    return Ty("tensor", dtype, extents)


def data(name: str, *args: Ty) -> Ty:
    return Ty("data", name, args)


def fn(ret: Ty, *params: Ty) -> Ty:
    return Ty("fn", "", (ret, *params))


A, B = Ty("var", "A"), Ty("var", "B")
INT, BOOL = tensor("int32"), tensor("bool")
#: Tensors of extents that are known when the program runs.
SOME, ROWS = tensor("float32", "?"), tensor("float32", "?", 3)
#: Data types: their parameters, and the fields of each constructor. The last constructor is one that ends.
DATA: dict[str, tuple[tuple[str, ...], dict[str, tuple[Ty, ...]]]] = {
    "Seq": (("A",), {"Put": (A, data("Seq", A)), "Empty": ()}),
    "Tree": (("A",), {"Fork": (data("Tree", A), A, data("Tree", A)), "Bare": ()}),
    "Maybe": (("A",), {"Just": (A,), "Nought": ()}),
    "Both": (("A", "B"), {"Pair": (A, B)}),
    "Either": (("A", "B"), {"Left": (A,), "Right": (B,)}),
    "Rose": (("A",), {"Petals": (A, data("Seq", data("Rose", A)))}),
    "Nest": (("A",), {"Deeper": (A, data("Nest", Ty("tuple", "", (A, A)))), "Flat": ()}),
    "Action": (("A",), {"Apply": (fn(A, A),), "Stay": ()}),
    "Cell": (("A",), {"Shared": (Ty("ref", "", (A,)),)}),
    "Colour": ((), {"Red": (), "Green": (), "Blue": ()}),
}
PRELUDE = (
    "".join(
        f"type {name}{f'[{chr(44).join(params)}]' if params else ''} {{ "
        + ", ".join(
            constructor + (f"({', '.join(map(str, fields))})" if fields else "") for constructor, fields in constructor.items()
        )
        + " }\n"
        for name, (params, constructor) in DATA.items()
    )
    + """
def @same[A](%x: A) -> A { %x }
def @first[A, B](%x: A, %y: B) -> A { %x }
def @swap[A, B](%p: (A, B)) -> (B, A) { (%p.1, %p.0) }
def @twice[A](%f: fn (A) -> A, %x: A) -> A { %f(%f(%x)) }
def @exchange[A](%r: ref(A), %x: A) -> A { let %old = ref_read(%r); ref_write(%r, %x); %old }
def @each[A, B](%f: fn (A) -> B, %l: Seq[A]) -> Seq[B] {
  match (%l) { Put(%h, %t) => Put(%f(%h), @each(%f, %t)), Empty => Empty } }
def @fold[A, B](%f: fn (A, B) -> A, %a: A, %l: Seq[B]) -> A {
  match (%l) { Put(%h, %t) => @fold(%f, %f(%a, %h), %t), Empty => %a } }
def @odds[A](%l: Seq[A]) -> Seq[A] { match (%l) { Put(%h, %t) => Put(%h, @evens(%t)), Empty => Empty } }
def @evens[A](%l: Seq[A]) -> Seq[A] { match (%l) { Put(_, %t) => @odds(%t), _ => Empty } }
def @depth[A](%t: Tree[A]) -> int32 {
  match (%t) { Fork(%l, _, %r) => add(1, maximum(@depth(%l), @depth(%r))), Bare => 0 } }
def @leftmost[A](%t: Tree[A], %x: A) -> A {
  match (%t) { Fork(Bare, %y, _) => %y, Fork(%l, _, _) => @leftmost(%l, %x), Bare => %x } }
def @value[A](%m: Maybe[A]) -> A { match? (%m) { Just(%x) => %x } }
def @act[A](%a: Action[A], %x: A) -> A { match (%a) { Apply(%f) => %f(%x), Stay => %x } }
def @some(%n: int32) -> Tensor[(?), float32] {
  let %ones = dyn.full(1f, reshape(bitwise_and(%n, 3), newshape=[1]), shape=None, dtype="float32");
  cast(squeeze(argwhere(%ones), axis=[1]), dtype="float32") }
def @rows(%n: int32) -> Tensor[(?, 3), float32] { multiply(expand_dims(@some(%n), axis=1), full(1.5f, shape=[1, 3], dtype="float32")) }
"""
)
#: Polymorphic functions: their result and their parameters.
GENERIC: dict[str, tuple[Ty, ...]] = {
    "@same": (A, A),
    "@first": (A, A, B),
    "@twice": (A, fn(A, A), A),
    "@exchange": (A, Ty("ref", "", (A,)), A),
    "@swap": (Ty("tuple", "", (B, A)), Ty("tuple", "", (A, B))),
    "@each": (data("Seq", B), fn(B, A), data("Seq", A)),
    "@fold": (A, fn(A, A, B), A, data("Seq", B)),
    "@odds": (data("Seq", A), data("Seq", A)),
    "@depth": (INT, data("Tree", A)),
    "@leftmost": (A, data("Tree", A), A),
    "@value": (A, data("Maybe", A)),
    "@act": (A, data("Action", A), A),
}


def bound(template: Ty, wanted: Ty, values: dict[str, Ty]) -> bool:
    """Whether a type is an instance of a template; `values` gets the types of its parameters."""
    if template.kind == "var" and template in (A, B):
        return values.setdefault(template.name, wanted) == wanted
    if (template.kind, template.name, len(template.parts)) != (wanted.kind, wanted.name, len(wanted.parts)):
        return False
    if template.kind == "tensor":
        return template.parts == wanted.parts
    return all(bound(t, w, values) for t, w in zip(template.parts, wanted.parts))
