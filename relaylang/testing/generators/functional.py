"""Random programs of functions: closures, functions of functions, recursion, references, data and matches, as text."""

from __future__ import annotations

import random

T = "Tensor[(2, 3), float32]"
DATA = "type Chain[A] { Link(A, Chain[A]), End }\ntype Box[A] { Boxed(A) }\n"
WALKS = f"""
def @fold(%f: fn ({T}, {T}) -> {T}, %a: {T}, %l: Chain[{T}]) -> {T} {{
  match (%l) {{ Link(%h, %t) => @fold(%f, %f(%a, %h), %t), End => %a }}
}}
def @opened[A](%b: Box[A]) -> A {{ match (%b) {{ Boxed(%a) => %a }} }}
def @each[A, B](%f: fn (A) -> B, %l: Chain[A]) -> Chain[B] {{
  match (%l) {{ Link(%h, %t) => Link(%f(%h), @each(%f, %t)), End => End }}
}}
"""
TWICE = f"def @twice(%f: fn ({T}) -> {T}, %x: {T}) -> {T} {{ %f(%f(%x)) }}\n"
SCALED = f"""
def @scaled(%x: {T}) -> {T} {{ multiply(%x, 0.5f) }}
"""
#: Recursion, and the same as a loop.
POWER = f"""def @power(%n: int32, %x: {T}) -> {T} {{
  if (less_equal(%n, 0)) {{ tanh(%x) }} else {{ multiply(tanh(%x), @power(subtract(%n, 1), %x)) }}
}}
"""
LOOP = f"""def @power(%n: int32, %x: {T}) -> {T} {{
  if (less_equal(%n, 0)) {{ tanh(%x) }} else {{ @power(subtract(%n, 1), multiply(tanh(%x), %x)) }}
}}
"""
UNARY = ("nn.relu", "negative", "abs", "tanh", "sigmoid")
BINARY = ("add", "subtract", "multiply", "maximum")


#: The kind of name that a statement adds: functions, their makers, references and lists; a tensor where none is named.
_JOINS = {"closure": "f", "maker": "m", "make": "f", "new": "r", "link": "l", "boxes": "l", "each": "l"}


class Functional:
    """`@main` of two tensors; flags select its constructs."""

    def __init__(
        self,
        seed: int,
        *,
        references: bool = False,
        data: bool = False,
        smooth: bool = False,
        given: bool = False,
        loops: bool = False,
    ) -> None:
        self.rng = random.Random(seed)
        self.references, self.data, self.smooth, self.given = references, data, smooth, given
        self.general = SCALED + (LOOP if loops else POWER)
        self.less = "less_equal" if smooth else "less"  # the one of the two that has a gradient in TVM
        self.unary = ("tanh", "sigmoid", "negative") if smooth else UNARY
        self.binary = ("add", "subtract", "multiply") if smooth else BINARY
        self.made = 0

    def text(self, size: int = 8) -> str:
        body = self.block({"t": ["%x", "%y"]}, size, 0)
        used = (DATA + WALKS if self.data else "") + ("" if self.smooth else TWICE) + self.general
        return f"{used}def @main(%x: {T}, %y: {T}) -> {T} {{\n{body}}}\n"

    def name(self) -> str:
        self.made += 1
        return f"%v{self.made}"

    def pick(self, env: dict[str, list[str]], kind: str = "t") -> str:
        return self.rng.choice(env[kind][-5:])

    def block(self, env: dict[str, list[str]], size: int, depth: int) -> str:
        env = {k: list(v) for k, v in env.items()}
        lines = [self.statement(env, depth) for _ in range(size)]
        return "".join(f"  {line}\n" for line in lines) + f"  {self.pick(env)}\n"

    def tensor(self, env: dict[str, list[str]]) -> str:
        rng = self.rng
        if rng.random() < 0.4:
            return f"{rng.choice(self.unary)}({self.pick(env)})"
        right = rng.choice([self.pick(env), self.pick(env), f"{rng.randint(1, 4) / 4}f", "add(0.25f, 0.5f)"])
        return f"{rng.choice(self.binary)}({self.pick(env)}, {right})"

    def kinds(self, env: dict[str, list[str]], depth: int) -> list[str]:
        """The kinds of a statement in a scope, as often as they are to occur."""
        kinds = ["tensor"] * 4 + ["tuple", "power"]
        if self.smooth:  # TVM's gradient gives functions that a let binds types that its checker refuses
            kinds += ["scaled", "if", "if"] if depth < 2 else ["scaled"]
        elif self.given:  # functions stand only where others are given them
            kinds += ["twice", "twice", "twice", "if"] if depth < 2 else ["twice"]
        elif depth < 2:
            kinds += ["twice", "if", "if", "closure", "closure", "loop", "maker"]
        else:
            kinds += ["twice"]
        if env.get("f"):
            kinds += ["call", "call"]
        if env.get("m"):
            kinds += ["make"]
        if self.references:
            kinds += ["new"] + ["read", "write", "write"] * bool(env.get("r"))
        if self.data:
            kinds += ["link", "link"] + ["match", "fold", "each", "boxes"] * bool(env.get("l"))
        return kinds

    def statement(self, env: dict[str, list[str]], depth: int) -> str:
        """A let (or an effect) whose variable joins the names of its kind."""
        name = self.name()
        kind = self.rng.choice(self.kinds(env, depth))
        if kind == "write":
            return f"ref_write({self.pick(env, 'r')}, {self.pick(env)});"
        if kind == "loop":
            return self.loop(env, name)
        value = self.value(kind, env, depth)
        env.setdefault(_JOINS.get(kind, "t"), []).append(name)
        return f"let {name} = {value};"

    def value(self, kind: str, env: dict[str, list[str]], depth: int) -> str:
        match kind:
            case "tensor":
                return self.tensor(env)
            case "tuple":
                return f"({self.pick(env)}, {self.tensor(env)}).{self.rng.randrange(2)}"
            case "twice":
                return f"@twice({self.function(env)}, {self.pick(env)})"
            case "scaled":
                return f"@scaled({self.pick(env)})"
            case "power":
                return f"@power({self.rng.choice([0, 1, 2])}, {self.pick(env)})"
            case "if":
                cond = self.rng.choice([f"{self.less}(sum({self.pick(env)}), sum({self.pick(env)}))", f"{self.less}(1, 2)"])
                return f"if ({cond}) {{\n{self.block(env, 2, depth + 1)}  }} else {{\n{self.block(env, 2, depth + 1)}  }}"
            case "closure":
                param = self.name()
                inner = {**env, "t": [*env["t"], param]}
                return f"fn ({param}: {T}) -> {T} {{\n{self.block(inner, 2, depth + 1)}  }}"
            case "maker":
                param, other = self.name(), self.name()
                inner = {**env, "t": [*env["t"], param, other]}
                body = self.block(inner, 1, depth + 1)
                return f"fn ({param}: {T}) -> fn ({T}) -> {T} {{ fn ({other}: {T}) -> {T} {{\n{body}  }} }}"
            case "make":
                return f"{self.pick(env, 'm')}({self.pick(env)})"
            case "call":
                return f"{self.pick(env, 'f')}({self.pick(env)})"
            case "new":
                return f"ref({self.pick(env)})"
            case "read":
                return f"ref_read({self.pick(env, 'r')})"
        return self.of_list(kind, env)

    def of_list(self, kind: str, env: dict[str, list[str]]) -> str:
        match kind:
            case "link":
                rest = self.pick(env, "l") if env.get("l") else "End"
                return f"Link({self.pick(env)}, {rest})"
            case "match":
                head, rest = self.name(), self.name()
                arm = self.block({**env, "t": [*env["t"], head], "l": [*env["l"], rest]}, 1, 2)
                return f"match ({self.pick(env, 'l')}) {{ Link({head}, {rest}) => {{\n{arm}  }}, End => {self.pick(env)} }}"
            case "fold":
                a, b = self.name(), self.name()
                fold = f"fn ({a}: {T}, {b}: {T}) -> {T} {{ {self.rng.choice(self.binary)}({a}, {b}) }}"
                return f"@fold({fold}, {self.pick(env)}, {self.pick(env, 'l')})"
            case "boxes":
                box = self.name()
                opened = f"fn ({box}: Box[{T}]) -> {T} {{ @opened({box}) }}"
                return f"@each({opened}, @each(Boxed, {self.pick(env, 'l')}))"
        return f"@each({self.function(env)}, {self.pick(env, 'l')})"

    def loop(self, env: dict[str, list[str]], name: str) -> str:
        index, acc, result = self.name(), self.name(), self.name()
        step = f"{name}(subtract({index}, 1), {self.tensor({**env, 't': [*env['t'], acc]})})"
        body = f"if ({self.less}({index}, 0)) {{ {acc} }} else {{ {step} }}"
        start = self.pick(env)
        env["t"].append(result)
        return (
            f"let {name} = fn ({index}: int32, {acc}: {T}) -> {T} {{ {body} }};\n"
            f"  let {result} = {name}({self.rng.randint(0, 2)}, {start});"
        )

    def function(self, env: dict[str, list[str]]) -> str:
        if env.get("f") and self.rng.random() < 0.5:
            return self.pick(env, "f")
        if self.rng.random() < 0.6:
            return "@scaled"
        param = self.name()
        return f"fn ({param}: {T}) -> {T} {{ {self.rng.choice(self.unary)}({param}) }}"
