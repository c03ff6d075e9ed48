"""Random well-typed programs of every construct, as text.

They have data types and nested matches, polymorphism, closures, mutual recursion, references, and tuples of anything. They
have whole numbers of every width, tensors whose extents the data give, and tensors of no elements. Some of them fail.

A program grows from the wanted type: `Typed.expr` makes an expression out of the variables in scope. Every machine rounds
its operators on floats in the same way, so programs may decide by their results.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from relaylang.testing.generators.constructs import (
    BOOL,
    DATA,
    FLOATS,
    GENERIC,
    INT,
    INTS,
    PRELUDE,
    ROWS,
    SOME,
    A,
    B,
    Ty,
    bound,
    data,
    fn,
    tensor,
)

__all__ = ["PRELUDE", "Ty", "Typed"]

#: The ends of literals by element type.
_SUFFIX = {"int32": "", "float32": "f", "float64": "f64"}
_SUFFIX |= {dtype: dtype.replace("uint", "u").replace("int", "i") for dtype in INTS if dtype != "int32"}
SHAPES = ((2, 3), (3,), (0, 3), (2, 0), (1, 3))


Env = dict[Ty, list[str]]


class Typed:
    """Makes a program of one seed. The names of its functions begin with `prefix`.

    Without `sums`, floats are not added up along axes, which machines do in different orders.
    """

    def __init__(self, seed: int, prefix: str = "", *, sums: bool = True) -> None:
        self.rng = random.Random(seed)
        self.prefix = prefix
        self.sums = sums
        self.made = 0
        #: whether the body of a helper grows, which calls helpers with a smaller number only
        self.inside = False
        #: how many expressions around this one leave its type open
        self.loose = 0
        self.helpers: dict[str, tuple[Ty, ...]] = {}
        self.params: list[Ty] = []

    def text(self, size: int = 8) -> str:
        """The functions of the program; they need `PRELUDE`. `@{prefix}main` takes values of the types `params`."""
        rng = self.rng
        names = [f"@{self.prefix}h{n}" for n in range(rng.choice([0, 1, 2, 2]))]
        open_types = [(A, B) if rng.random() < 0.4 else () for _ in names]
        for name, free in zip(names, open_types):
            self.helpers[name] = (self.type(1, free), INT, *[*free, *[self.type(1, free) for _ in range(rng.randint(1, 2))]])
        self.inside = True
        lines = [self._helper(name, free) for name, free in zip(names, open_types)]
        self.inside = False
        self.params = [rng.choice([INT, BOOL, tensor("float32"), self._element()]), INT, self._tensor(), SOME]
        return "\n".join([*lines, self._function(f"@{self.prefix}main", self.params, None, size)])

    def _helper(self, name: str, free: Sequence[Ty]) -> str:
        """A function that calls itself or another with a smaller number."""
        result_type, _, *rest = self.helpers[name]
        number, params = self._name(), [self._name() for _ in rest]
        env: Env = {}
        for p, ty in zip(params, rest):
            env.setdefault(ty, []).append(p)
        listed = ", ".join([f"{number}: int32", *[f"{p}: {ty}" for p, ty in zip(params, rest)]])
        ended = self._block(env, result_type, 1, 1)
        lines: list[str] = []
        inner = {**env, INT: [*env.get(INT, ()), number]}
        for called in self.rng.sample(list(self.helpers), min(2, len(self.helpers))):
            self._statement(lines, inner, self._call(called, inner, f"subtract({number}, 1)"))
        body = "".join(f"  {line}\n" for line in lines) + self._block(inner, result_type, 2, 1)
        generic = f"[{', '.join(map(str, free))}]" if free else ""
        return f"def {name}{generic}({listed}) -> {result_type} {{\n  if (less({number}, 1)) {{\n{ended}  }} else {{\n{body}  }} }}\n"

    def _call(self, name: str, env: Env, number: str) -> tuple[Ty, str]:
        """A helper's call with types for its parameters, and its type."""
        result_type, _, *rest = self.helpers[name]
        inside = {"A": self._known(env), "B": self._known(env)}
        args = [self.expr(ty.filled(inside), env, 1) for ty in rest]
        return result_type.filled(inside), f"{name}({', '.join([number, *args])})"

    def _known(self, env: Env) -> Ty:
        """A type of a variable in scope."""
        return self.rng.choice(list(env)) if env else INT

    def _function(self, name: str, params: Sequence[Ty], result_type: Ty | None, size: int) -> str:
        names = [self._name() for _ in params]
        env: Env = {}
        for p, ty in zip(names, params):
            env.setdefault(ty, []).append(p)
        listed = ", ".join(f"{p}: {ty}" for p, ty in zip(names, params))
        lines: list[str] = []
        for _ in range(size):
            self._step(lines, env, 2)
        operands = [self.rng.choice(env[self._known(env)][-3:]) for _ in range(4)]
        if self.rng.random() < 0.1:  # the extents may not fit: nothing that can fail comes behind it
            lines.append(f"let %risk = add({self.expr(SOME, env, 1)}, {self.expr(SOME, env, 1)});")
            operands.append("%risk")
        return f"def {name}({listed}) {{\n" + "".join(f"  {line}\n" for line in lines) + f"  ({', '.join(operands)})\n}}\n"

    # --- types ---

    def _element(self) -> Ty:
        return tensor(self.rng.choice([*INTS, *FLOATS, *FLOATS, "int32", "int32", "bool"]))

    def _tensor(self) -> Ty:
        return tensor(self.rng.choice(["float32", "float32", "int32", "bool"]), *self.rng.choice(SHAPES))

    def type(self, depth: int, free: Sequence[Ty] = ()) -> Ty:
        """A random type."""
        rng = self.rng
        if depth == 0 or rng.random() < 0.35:
            return rng.choice([*free, *free, INT, BOOL, tensor("float32"), self._element(), self._tensor(), SOME, ROWS])
        match rng.choice(["data", "data", "data", "tuple", "fn", "ref"]):
            case "data":
                name = rng.choice(list(DATA))
                return data(name, *[self.type(depth - 1, free) for _ in DATA[name][0]])
            case "tuple":
                return Ty("tuple", "", tuple([self.type(depth - 1, free) for _ in range(rng.randint(0, 3))]))
            case "ref":
                return Ty("ref", "", (self.type(depth - 1, free),))
        return fn(*[self.type(depth - 1, free) for _ in range(rng.randint(2, 3))])

    # --- statements ---

    def _name(self) -> str:
        self.made += 1
        return f"%v{self.made}"

    def _statement(self, lines: list[str], env: Env, typed_text: tuple[Ty, str]) -> None:
        ty, text = typed_text
        name = self._name()
        lines.append(f"let {name}: {ty} = {text};")
        env.setdefault(ty, []).append(name)

    def _step(self, lines: list[str], env: Env, depth: int) -> None:
        """A let, or an effect."""
        cells = [ty for ty in env if ty.kind == "ref"]
        if cells and self.rng.random() < 0.2:
            ty = self.rng.choice(cells)
            lines.append(f"ref_write({self.rng.choice(env[ty])}, {self.expr(ty.parts[0], env, 1)});")
        elif self.helpers and not self.inside and self.rng.random() < 0.15:
            self._statement(lines, env, self._call(self.rng.choice(list(self.helpers)), env, str(self.rng.randint(0, 3))))
        elif self.rng.random() < 0.1:
            self._loop(lines, env)
        elif self.rng.random() < 0.35:
            ty = self.rng.choice([INT, self._element(), self._tensor()])
            self._statement(lines, env, (ty, self._number(ty, env, depth + 1)))
        else:
            ty = self._known(env) if self.rng.random() < 0.3 else self.type(2, [t for t in env if t.kind == "var"])
            self._statement(lines, env, (ty, self.expr(ty, env, depth, fresh=True)))

    def _loop(self, lines: list[str], env: Env) -> None:
        """A closure that calls itself, and a call of it."""
        loop, index, held, ty = self._name(), self._name(), self._name(), self._known(env)
        inner = {**env, ty: [*env[ty], held], INT: [*env.get(INT, ()), index]}
        step = self.expr(ty, inner, 1)
        lines.append(
            f"let {loop} = fn ({index}: int32, {held}: {ty}) -> {ty} "
            f"{{ if (less({index}, 1)) {{ {held} }} else {{ {loop}(subtract({index}, 1), {step}) }} }};"
        )
        self._statement(lines, env, (ty, f"{loop}({self.rng.randint(0, 3)}, {self.expr(ty, env, 0)})"))

    def _block(self, env: Env, result_type: Ty, size: int, depth: int) -> str:
        """Statements and a value."""
        inner = {ty: list(names) for ty, names in env.items()}
        lines: list[str] = []
        for _ in range(self.rng.randint(0, size)):
            self._step(lines, inner, depth)
        return "".join(f"  {line}\n" for line in lines) + f"  {self.expr(result_type, inner, depth)}\n"

    # --- expressions ---

    def expr(self, ty: Ty, env: Env, depth: int, fresh: bool = False) -> str:
        """An expression of a type; `fresh`: not only a variable."""
        names = env.get(ty)
        if names and not fresh and (depth <= 0 or ty.kind == "var" or self.rng.random() < 0.5):
            return self.rng.choice(names[-4:])
        if depth <= 0:
            return self._plain(ty, env, 0)
        others = (self._if, self._match, self._match, self._generic, self._taken)
        return self.rng.choice([*[self._plain] * 4, *others])(ty, env, depth)

    def _plain(self, ty: Ty, env: Env, depth: int) -> str:
        """What the type itself suggests: an operator, a constructor, a tuple, a function."""
        match ty.kind:
            case "tensor":
                return self._number(ty, env, depth)
            case "tuple":
                fields = [self.expr(p, env, depth - 1) for p in ty.parts]
                return f"({', '.join(fields)}{',' * (len(fields) == 1)})"
            case "fn":
                return self._closure(ty, env, depth)
            case "ref":
                return f"ref({self.expr(ty.parts[0], env, depth - 1)})"
            case "data":
                params, constructors = DATA[ty.name]
                inside = dict(zip(params, ty.parts))
                name = self.rng.choice(list(constructors)) if depth > 0 else list(constructors)[-1]
                args = [self.expr(p.filled(inside), env, depth - 1) for p in constructors[name]]
                text = f"{name}({', '.join(args)})" if args else name
                # Where nothing else says the type, the result of a function does.
                said = all(any(Ty("var", p) in f.parts or f == Ty("var", p) for f in constructors[name]) for p in params)
                return text if said or not self.loose else f"fn () -> {ty} {{ {text} }}()"
        return self.rng.choice(env[ty])

    def _closure(self, ty: Ty, env: Env, depth: int) -> str:
        result_type, *params = ty.parts
        for name, (params_of, constructors) in DATA.items():  # a constructor is a function
            for constructor, fields in constructors.items():
                inside: dict[str, Ty] = {}
                constructor_type = fn(data(name, *[Ty("var", p) for p in params_of]), *fields)
                if fields and self.rng.random() < 0.5 and bound(constructor_type, ty, inside):
                    return constructor
        names = [self._name() for _ in params]
        inner = {t: list(n) for t, n in env.items()}
        for p, t in zip(names, params):
            inner.setdefault(t, []).append(p)
        listed = ", ".join(f"{p}: {t}" for p, t in zip(names, params))
        return f"fn ({listed}) -> {result_type} {{\n{self._block(inner, result_type, 1 if depth > 0 else 0, depth - 1)}  }}"

    def _if(self, ty: Ty, env: Env, depth: int) -> str:
        arms = [self._block(env, ty, 1, depth - 1) for _ in range(2)]
        return f"if ({self.expr(BOOL, env, 1)}) {{\n{arms[0]}  }} else {{\n{arms[1]}  }}"

    def _generic(self, ty: Ty, env: Env, depth: int) -> str:
        """A call of a polymorphic function."""
        fitting = [
            (n, inside) for n, (result_type, *_) in GENERIC.items() for inside in [dict[str, Ty]()] if bound(result_type, ty, inside)
        ]
        name, inside = self.rng.choice(fitting)
        if name == "@value" and self.rng.random() < 0.85:  # it often fails
            return self._plain(ty, env, depth)
        for free in "AB":
            inside.setdefault(free, self._known(env))
        self.loose += 1
        args = [self.expr(p.filled(inside), env, depth - 1) for p in GENERIC[name][1:]]
        self.loose -= 1
        return f"{name}({', '.join(args)})"

    def _taken(self, ty: Ty, env: Env, depth: int) -> str:
        """A value out of a tuple, a reference, a function or a call."""
        forms = [
            f"{name}.{n}"
            for t, names in env.items()
            if t.kind == "tuple"
            for n, p in enumerate(t.parts)
            if p == ty
            for name in names[-2:]
        ]
        forms += [f"ref_read({name})" for name in env.get(Ty("ref", "", (ty,)), ())]
        called = [(t, name) for t, names in env.items() if t.kind == "fn" and t.parts[0] == ty for name in names[-2:]]
        if called and (not forms or self.rng.random() < 0.5):
            t, name = self.rng.choice(called)
            return f"{name}({', '.join(self.expr(p, env, 0) for p in t.parts[1:])})"
        return self.rng.choice(forms) if forms else self._plain(ty, env, depth)

    def _match(self, ty: Ty, env: Env, depth: int) -> str:
        known = [t for t in env if t.kind == "data" or (t.kind == "tuple" and t.parts)]
        over = self.rng.choice(known) if known and self.rng.random() < 0.8 else data("Maybe", self._known(env))
        clauses = [self._pattern(over, 2) for _ in range(self.rng.randint(0, 2))]
        partial = over.kind == "data" and self.rng.random() < 0.04
        if not partial or not clauses:
            if over.kind == "tuple" or self.rng.random() < 0.5:
                name = self._name()
                clauses.append(("_", {}) if self.rng.random() < 0.3 else (name, {name: over}))
            else:
                clauses += [self._constructed(over, constructor, 0) for constructor in DATA[over.name][1]]
        parts = []
        for pattern, names in clauses:
            inner = {t: list(n) for t, n in env.items()}
            for name, t in names.items():
                inner.setdefault(t, []).append(name)
            parts.append(f"{pattern} => {{\n{self._block(inner, ty, 1, depth - 1)}  }}")
        self.loose += 1
        value = self.expr(over, env, 1)
        self.loose -= 1
        return f"match{'?' * partial} ({value}) {{ {', '.join(parts)} }}"

    def _pattern(self, ty: Ty, depth: int) -> tuple[str, dict[str, Ty]]:
        """A pattern, and the variables that it binds."""
        rng = self.rng
        if depth > 0 and ty.kind == "data":
            return self._constructed(ty, rng.choice(list(DATA[ty.name][1])), depth - 1)
        if depth > 0 and ty.kind == "tuple" and ty.parts:
            texts, names = self._patterns(ty.parts, depth - 1)
            return f"({', '.join(texts)}{',' * (len(texts) == 1)})", names
        name = self._name()
        return ("_", {}) if rng.random() < 0.25 else (name, {name: ty})

    def _constructed(self, ty: Ty, constructor: str, depth: int) -> tuple[str, dict[str, Ty]]:
        params, constructors = DATA[ty.name]
        inside = dict(zip(params, ty.parts))
        texts, names = self._patterns([p.filled(inside) for p in constructors[constructor]], depth)
        return (f"{constructor}({', '.join(texts)})" if texts else constructor), names

    def _patterns(self, types: Sequence[Ty], depth: int) -> tuple[list[str], dict[str, Ty]]:
        patterns = [self._pattern(t, depth if self.rng.random() < 0.6 else 0) for t in types]
        return [text for text, _ in patterns], {name: t for _, names in patterns for name, t in names.items()}

    # --- numbers and tensors ---

    def literal(self, dtype: str) -> str:
        rng = self.rng
        if dtype == "bool":
            return rng.choice(["True", "False"])
        if dtype in FLOATS:
            return f"{rng.randint(-12, 12) / 4}{_SUFFIX[dtype]}"
        return f"{rng.randint(0 if dtype[0] == 'u' else -5, 9)}{_SUFFIX[dtype]}"

    def _number(self, ty: Ty, env: Env, depth: int) -> str:
        """A tensor: an operator of others."""
        if ty.parts[:1] == ("?",):
            return self._dynamic(ty, env, depth)
        dtype, shape = ty.name, ty.parts
        if depth <= 0:
            shown = ", ".join(map(str, shape))
            return f'full({self.literal(dtype)}, shape=[{shown}], dtype="{dtype}")' if shape else self.literal(dtype)
        rng = self.rng

        def part(of: Ty = ty) -> str:
            return self.expr(of, env, depth - 1)

        forms: list[Callable[[], str]] = [lambda: f"where({part(tensor('bool', *shape))}, {part()}, {part()})"]
        if dtype == "bool":
            other = rng.choice([*INTS, *FLOATS]) if not shape else rng.choice(["float32", "int32"])
            compared = tensor(other, *shape)
            compare = rng.choice(["less", "less_equal", "greater", "greater_equal", "equal", "not_equal"])
            forms += [lambda: f"{compare}({part(compared)}, {part(compared)})"] * 3
            forms += [
                lambda: f"{rng.choice(['logical_and', 'logical_or', 'logical_xor'])}({part()}, {part()})",
                lambda: f"logical_not({part()})",
            ]
            if not shape:
                floats = tensor(rng.choice(FLOATS))
                forms += [
                    lambda: f"{rng.choice(['isnan', 'isfinite', 'isinf'])}({part(floats)})",
                    lambda: f"{rng.choice(['all', 'any'])}({part(tensor('bool', *rng.choice(SHAPES)))})",
                ]
        elif dtype in FLOATS:
            forms += [lambda: f"{rng.choice(['add', 'subtract', 'multiply', 'maximum', 'minimum', 'divide'])}({part()}, {part()})"] * 4
            forms += [lambda: f"{rng.choice(['negative', 'abs', 'sqrt', 'floor', 'ceil', 'trunc', 'nn.relu', 'sign'])}({part()})"] * 2
        else:
            forms += [lambda: f"{rng.choice(['add', 'subtract', 'multiply', 'maximum', 'minimum'])}({part()}, {part()})"] * 4
            forms += [
                lambda: f"{rng.choice(['bitwise_and', 'bitwise_or', 'bitwise_xor'])}({part()}, {part()})",
                lambda: f"{rng.choice(['negative', 'abs', 'bitwise_not', 'sign'])}({part()})",
            ]
            if not shape:
                forms += [lambda: self._refusing(ty, part)] * 2
        if shape:
            forms += [lambda: self._shaped(ty, env, depth)] * 2
        else:
            forms += [lambda: self._scalar(dtype, env, depth)]
        return rng.choice(forms)()

    def _refusing(self, ty: Ty, part: Callable[[], str]) -> str:
        """An operator that some whole numbers make fail."""
        rng = self.rng
        if rng.random() < 0.5:
            operator = rng.choice(["divide", "floor_divide", "trunc_divide", "mod", "floor_mod", "trunc_mod"])
            divisor = part() if rng.random() < 0.2 else f"{rng.randint(1, 7)}{_SUFFIX[ty.name]}"
            return f"{operator}({part()}, {divisor})"
        number = part() if rng.random() < 0.05 else f"{rng.randint(0, 6)}{_SUFFIX[ty.name]}"
        return f"{rng.choice(['left_shift', 'right_shift', 'power'])}({part()}, {number})"

    def _scalar(self, dtype: str, env: Env, depth: int) -> str:
        """A scalar out of others or out of tensors."""
        rng = self.rng
        if dtype == "int32" and rng.random() < 0.5:
            if rng.random() < 0.5:
                return f'take(shape_of({self.expr(SOME, env, depth - 1)}, dtype="int32"), 0)'
            return f"sum({self.expr(tensor('int32', *rng.choice(SHAPES)), env, depth - 1)})"
        if dtype == "float32" and self.sums and rng.random() < 0.5:
            return f"sum({self.expr(rng.choice([SOME, tensor('float32', 2, 3)]), env, depth - 1)})"
        other = rng.choice([d for d in (*INTS, "bool", *FLOATS * (dtype in FLOATS)) if d != dtype])
        return f'cast({self.expr(tensor(other), env, depth - 1)}, dtype="{dtype}")'

    def _shaped(self, ty: Ty, env: Env, depth: int) -> str:
        """A tensor out of tensors of other shapes."""
        rng, shape = self.rng, ty.parts

        def part(*extents: int) -> str:
            return self.expr(tensor(ty.name, *extents), env, depth - 1)

        if len(shape) == 1:
            return f"reshape({part(1, 3)}, newshape=[3])"
        if shape == (1, 3):
            return f"expand_dims({part(3)}, axis=0)"
        if shape == (2, 3) and rng.random() < 0.5:
            pieces = rng.choice([[(1, 3), (1, 3)], [(0, 3), (2, 3)]])
            return f"concatenate(({', '.join(part(*p) for p in pieces)}), axis=0)"
        rows, columns = shape
        if ty.name != "bool" and rng.random() < 0.5:
            return f"{'add' if ty.name == 'int32' else 'multiply'}({part(*shape)}, {part()})"
        return f"transpose({part(columns, rows)}, axes=[1, 0])"

    def _dynamic(self, ty: Ty, env: Env, depth: int) -> str:
        """A tensor whose extents the data give."""
        rng = self.rng
        if depth <= 0:
            return f"{'@some' if ty == SOME else '@rows'}({self.expr(INT, env, 0)})"

        def part(of: Ty = ty) -> str:
            return self.expr(of, env, depth - 1)

        forms = [
            lambda: f"{rng.choice(['negative', 'abs', 'nn.relu', 'floor'])}({part()})",
            lambda: f"{rng.choice(['add', 'multiply', 'maximum'])}({part()}, {part(tensor('float32'))})",
            lambda: f"concatenate(({part()}, {part()}), axis=0)",
        ]
        if ty == SOME:
            forms += [
                lambda: f'cast(squeeze(argwhere(less({part()}, {part(tensor("float32"))})), axis=[1]), dtype="float32")',
                lambda: f"reshape({part(ROWS)}, newshape=[-1])",
                lambda: f"{'sum' if self.sums else 'max'}({part(ROWS)}, axis=[1])",
            ]
        else:
            forms += [
                lambda: f"add({part()}, {part(tensor('float32', 1, 3))})",
                lambda: f"multiply({part(tensor('float32', 1, 3))}, expand_dims({part(SOME)}, axis=1))",
            ]
        return rng.choice(forms)()
