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

    def statement(self, env: dict[str, list[str]], depth: int) -> str:
        """A let (or an effect) whose variable joins the names of its kind."""
        rng, name = self.rng, self.name()
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
        kind, new = rng.choice(kinds), "t"
        match kind:
            case "tensor":
                value = self.tensor(env)
            case "tuple":
                value = f"({self.pick(env)}, {self.tensor(env)}).{rng.randrange(2)}"
            case "twice":
                value = f"@twice({self.function(env)}, {self.pick(env)})"
            case "scaled":
                value = f"@scaled({self.pick(env)})"
            case "power":
                value = f"@power({rng.choice([0, 1, 2])}, {self.pick(env)})"
            case "if":
                cond = rng.choice([f"{self.less}(sum({self.pick(env)}), sum({self.pick(env)}))", f"{self.less}(1, 2)"])
                value = f"if ({cond}) {{\n{self.block(env, 2, depth + 1)}  }} else {{\n{self.block(env, 2, depth + 1)}  }}"
            case "closure":
                param, new = self.name(), "f"
                inner = {**env, "t": [*env["t"], param]}
                value = f"fn ({param}: {T}) -> {T} {{\n{self.block(inner, 2, depth + 1)}  }}"
            case "maker":
                param, other, new = self.name(), self.name(), "m"
                inner = {**env, "t": [*env["t"], param, other]}
                body = self.block(inner, 1, depth + 1)
                value = f"fn ({param}: {T}) -> fn ({T}) -> {T} {{ fn ({other}: {T}) -> {T} {{\n{body}  }} }}"
            case "make":
                value, new = f"{self.pick(env, 'm')}({self.pick(env)})", "f"
            case "call":
                value = f"{self.pick(env, 'f')}({self.pick(env)})"
            case "loop":
                index, acc, result = self.name(), self.name(), self.name()
                inner = {**env, "t": [*env["t"], acc]}
                loop = f"{name}(subtract({index}, 1), {self.tensor(inner)})"
                body = f"if ({self.less}({index}, 0)) {{ {acc} }} else {{ {loop} }}"
                start = self.pick(env)
                env["t"].append(result)
                return (
                    f"let {name} = fn ({index}: int32, {acc}: {T}) -> {T} {{ {body} }};\n"
                    f"  let {result} = {name}({rng.randint(0, 2)}, {start});"
                )
            case "new":
                value, new = f"ref({self.pick(env)})", "r"
            case "read":
                value = f"ref_read({self.pick(env, 'r')})"
            case "write":
                return f"ref_write({self.pick(env, 'r')}, {self.pick(env)});"
            case "link":
                rest = self.pick(env, "l") if env.get("l") else "End"
                value, new = f"Link({self.pick(env)}, {rest})", "l"
            case "match":
                head, rest = self.name(), self.name()
                one = self.block({**env, "t": [*env["t"], head], "l": [*env["l"], rest]}, 1, 2)
                value = f"match ({self.pick(env, 'l')}) {{ Link({head}, {rest}) => {{\n{one}  }}, End => {self.pick(env)} }}"
            case "fold":
                a, b = self.name(), self.name()
                fold = f"fn ({a}: {T}, {b}: {T}) -> {T} {{ {rng.choice(self.binary)}({a}, {b}) }}"
                value = f"@fold({fold}, {self.pick(env)}, {self.pick(env, 'l')})"
            case "boxes":
                b = self.name()
                opened = f"fn ({b}: Box[{T}]) -> {T} {{ @opened({b}) }}"
                value, new = f"@each({opened}, @each(Boxed, {self.pick(env, 'l')}))", "l"
            case _:
                value, new = f"@each({self.function(env)}, {self.pick(env, 'l')})", "l"
        env.setdefault(new, []).append(name)
        return f"let {name} = {value};"

    def function(self, env: dict[str, list[str]]) -> str:
        if env.get("f") and self.rng.random() < 0.5:
            return self.pick(env, "f")
        if self.rng.random() < 0.6:
            return "@scaled"
        param = self.name()
        return f"fn ({param}: {T}) -> {T} {{ {self.rng.choice(self.unary)}({param}) }}"
