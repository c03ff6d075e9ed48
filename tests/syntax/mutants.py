"""Programs with a few tokens deleted, doubled, swapped or replaced, for a reader that must say what is wrong.

`python -m tests.syntax.mutants 5000 7` tries 5000 of them with seed 7 and shows what went wrong.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from relaylang.diagnostics import Diagnostic, RelayError, render
from relaylang.ir import Expr, IRModule
from relaylang.reports import as_json
from relaylang.syntax import parse
from relaylang.typing import infer
from relaylang.typing.rest import check_rest
from tests.shared import CORPUS, FRAGMENTS, GOLDEN, ROOT

_PIECE = re.compile(r'"[^"\n]*"|/\*.*?\*/|//[^\n]*|[%@]?[\w.]+|\s+|->|=>|[^\w\s]', re.S)
_LONGEST = 12_000
_ODD = [
    "%", "@", "}", "{", "(", ")", "]", "[", ",", ";", "=", "->", "=>", '"', "'", "/*", "*/", "let ", "def ", "if ", "1e999f",
    "%x", "@f",
    "\x00", "\ud800", "é", "meta[", "Tensor[(", "#[metadata]", "\\", "?", "fn ", "match ", "type ", "999999999999999999999",
]  # fmt: skip


def originals() -> list[str]:
    """The texts that are changed: examples, golden files, fragments, the corpus; long ones are cut to whole lines."""
    files = [*sorted((ROOT / "examples").glob("*.relay"))]
    for folder in (GOLDEN, FRAGMENTS, CORPUS):
        files += sorted(p for p in folder.rglob("*") if p.suffix in (".relay", ".txt", ".rly"))
    texts = [p.read_text("utf-8") for p in files]
    packed = Path(CORPUS / "tvm_passes.jsonl.gz")
    if packed.exists():
        with gzip.open(packed, "rt", encoding="utf-8") as lines:
            for line in lines:
                texts += [v for v in json.loads(line).values() if isinstance(v, str) and len(v) > 40]
    return [t if len(t) < _LONGEST else t[: t.rindex("\n", 0, _LONGEST)] for t in texts if "\n" in t[:_LONGEST]]


def mutant(rng: random.Random, text: str) -> str:
    """The text with one to three of its tokens changed."""
    pieces = _PIECE.findall(text)
    for _ in range(rng.choice((1, 1, 2, 3))):
        tokens = [i for i, p in enumerate(pieces) if p.strip()]
        if not tokens:
            break
        at = rng.choice(tokens)
        what = rng.randrange(6)
        if what == 0:
            pieces[at] = ""
        elif what == 1:
            pieces[at] *= 2
        elif what == 2:
            other = rng.choice(tokens)
            pieces[at], pieces[other] = pieces[other], pieces[at]
        elif what == 3:
            pieces[at] = rng.choice(_ODD)
        elif what == 4:
            pieces.insert(at, rng.choice(_ODD))
        else:
            word = pieces[at]
            cut = rng.randrange(len(word))
            pieces[at] = word[:cut] + word[cut + 1 :]
    if rng.random() < 0.05:
        pieces = pieces[: rng.randrange(len(pieces) + 1)]
    return "".join(pieces)


def said(text: str) -> list[Diagnostic]:
    """What the reader and the checker say of a text. Raises what is no `RelayError`."""
    try:
        result = parse(text, "mutant")
    except RelayError as wrong:
        more = check_rest(wrong.partial, wrong.diagnostics) if isinstance(wrong.partial, IRModule) else []
        return [*wrong.diagnostics, *more]
    node: IRModule | Expr = result.value
    return infer(node, fragment=not isinstance(node, IRModule))


def problem(text: str) -> str | None:
    """What is not as it should be about the answer to a text, or None."""
    try:
        found = said(text)
        shown = [render(d, color=True) for d in found]
        for d in found:
            json.dumps(as_json(d))
    except Exception as ours:
        return f"{type(ours).__name__}: {ours}"
    errors = [d for d in found if d.severity == "error"]
    if any(d.code.startswith("R09") for d in found):
        return "an error of ours"
    if any(d.span is None for d in errors):
        return f"no place: {next(d for d in errors if d.span is None).title}"
    if any(not 0 <= d.span.start <= d.span.end <= len(text) for d in errors if d.span is not None):
        return "a place outside the text"
    if sum(d.code < "R0300" for d in errors) > 20:
        return f"{len(errors)} errors"
    if any("Traceback" in s for s in shown):
        return "a traceback"
    return None


def mutants(seed: int, count: int) -> Iterator[str]:
    rng = random.Random(seed)
    texts = originals()
    for _ in range(count):
        yield mutant(rng, rng.choice(texts))


def main() -> None:
    count, seed = int(sys.argv[1]), int(sys.argv[2])
    wrong = errors = told = 0
    for text in mutants(seed, count):
        what = problem(text)
        if what is not None:
            wrong += 1
            Path(f"/tmp/mutant-{wrong}.relay").write_text(text, "utf-8", "surrogatepass")
            print(f"{wrong}: {what[:300]}")
        else:
            n = sum(d.severity == "error" for d in said(text))
            errors += n
            told += n > 0
    print(f"{count} mutants, {wrong} wrong answers; {told} with errors, {errors / max(1, told):.2f} errors each")


if __name__ == "__main__":
    main()
