"""Writes relaylang/frontends/torch/torchscript/schemas.txt: the arguments of PyTorch's operators, by overload.

    scripts/torch_schemas.py    needs torch

A line is `sum.dim_IntList T:self I?:dim b=:keepdim * D?=:dtype > 1`. It has the operator and its overload, the arguments,
and the number of results. Each argument has a letter for its type. `?` means that it may be None, and `=` that it may be
missing. Arguments behind `*` have names only.

    T, L       a tensor, a list of tensors
    i, f, b    a number; I, F and B are lists of them
    s, S       a number of any kind, a list of them
    D, t, o    an element type, a text, anything else
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

FILE = Path(__file__).resolve().parent.parent / "relaylang/frontends/torch/torchscript/schemas.txt"
_UNUSED = (
    "backward cudnn miopen mkldnn mps sparse fbgemm cuda coo csr jagged foreach _fused _amp _nested _test _cslt _fft_ thnn"
    " _assert _dyn_quant _scaled_grouped _ctc _pdist _segment _standard_gamma _compute _coalesce _neg_view"
    " _fw_primal _make_dual _reshape_alias _transform _validate _weight_int _addmm _lstm_mps _dirichlet"
).split()
_LETTERS = {
    "Tensor": "T",
    "List[Tensor]": "L",
    "int": "i",
    "List[int]": "I",
    "float": "f",
    "List[float]": "F",
    "bool": "b",
    "List[bool]": "B",
    "number": "s",
    "List[number]": "S",
    "str": "t",
}


def letter(argument: Any, text: str) -> str:
    """The type of an argument. `text` is its declaration, which tells element types from numbers."""
    kind, mark = argument.type, ""
    if kind.kind() == "OptionalType":
        kind, mark = kind.getElementType(), "?"
    name = kind.annotation_str
    if name == "List[Optional[Tensor]]":
        return "L" + mark
    if "ScalarType" in text:
        return "D" + mark
    return _LETTERS.get(name, "o") + mark


def line(name: str, schema: Any) -> str | None:
    """The line of an overload; None for one that writes its result elsewhere, or takes no tensors."""
    if any(a.is_out for a in schema.arguments):
        return None
    text = str(schema)
    inside = text[text.index("(") + 1 : text.index(") -> ")]
    declared, depth, start = [], 0, 0
    for at, sign in enumerate(inside + ","):
        depth += (sign in "([") - (sign in ")]")
        if sign == "," and depth == 0:
            declared.append(inside[start:at].strip())
            start = at + 1
    declared = [d for d in declared if d and d not in ("*", "...")]
    words = [f"{name}.{schema.overload_name}" if schema.overload_name else name]
    named = False
    for argument, said in zip(schema.arguments, declared, strict=True):
        if argument.kwarg_only and not named:
            words.append("*")
            named = True
        default = "=" if argument.has_default_value() else ""
        words.append(f"{letter(argument, said)}{default}:{argument.name}")
    made = [r.type.annotation_str for r in schema.returns]
    if not any("Tensor" in m for m in made):
        return None
    return " ".join([*words, ">", "L" if made == ["List[Tensor]"] else str(len(made))])


def wanted(name: str, all_names: set[str]) -> bool:
    """Whether programs call the operator: no gradients, no other backends, no writing in place of a form that does not."""
    if name.endswith("_") and name[:-1] in all_names:
        return False
    return not any(word in name for word in _UNUSED)


def lines() -> list[str]:
    """All lines, in the order in which PyTorch tries overloads."""
    schemas = [s for s in torch._C._jit_get_all_schemas() if s.name.startswith("aten::")]
    names = {s.name.removeprefix("aten::") for s in schemas}
    found = []
    for name in sorted(n for n in names if wanted(n, names)):
        own = torch._C._jit_get_schemas_for_operator(f"aten::{name}")
        found += [made for made in (line(name, schema) for schema in own) if made is not None]
    return found


def main() -> None:
    FILE.write_text("\n".join(lines()) + "\n")


if __name__ == "__main__":
    main()
