"""Programs with a few tokens deleted, doubled, swapped or replaced, through every verb that reads a text.

The reader says what is wrong; what can be read is checked, printed in both styles, read again, formatted, and edited in the
language server. `python -m tests.syntax.mutants 5000 7` tries 5000 with seed 7 and shows what went wrong; with a third
argument, `gently`, most of them can still be read.
"""

from __future__ import annotations

import faulthandler
import gzip
import json
import random
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from relaylang.diagnostics import Diagnostic, RelayError, render
from relaylang.diagnostics.export import as_json
from relaylang.ir import Expr, IRModule, structural_diff
from relaylang.lsp import features
from relaylang.lsp.analysis import Analysis
from relaylang.syntax import astext, parse
from relaylang.syntax.format import format_text
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

_NUMBERS = [
    "0", "1", "2", "3", "7", "10", "2i64", "4i64", "1f", "1.5", "0.1f16", "1bf16", "3u8", "1e3", "-1", "1000000000", "2.5f64",
    "None", "inff", "nan", "65504f16", "3.40282e+38f",
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


def _kindly(rng: random.Random, word: str, pieces: list[str], tokens: list[int]) -> str:
    """A token's text changed so that the whole may well be a program still."""
    if word[0].isdigit() and rng.random() < 0.8:
        return rng.choice(_NUMBERS)
    if word[0] == "%" and len(word) > 1 and rng.random() < 0.6:
        others = [o for i in tokens if (o := pieces[i])[0] == "%" and len(o) > 1]
        return rng.choice([*others, f"({word})", f"({word};{word})", f"{{{word}}}", f"-{word}", f"{word} + {word}", f"({word},).0"])
    if word == ";":
        return rng.choice(["", "\n", ";\n\n", "; // c\n", ";1;", "\n-1\n"])
    if word in ("(", "{", ",", ")", "}", "=", "["):
        return rng.choice(["{}/*c*/", "/* ty=int32* */{}", " {} // d\n", "\n{}", "/* span=a*b:1:2 */{}/*x*//*y*/"]).format(word)
    if word in ("[]", "None", "True", "False"):
        return rng.choice(["None", "True", "[]", "[1, None]", "0", "-1"])
    return f"{word} " if word[-1] != "/" else word


def mutant(rng: random.Random, text: str, gentle: bool = False) -> str:
    """The text with one to three of its tokens changed; with `gentle`, so that many of them can be read."""
    pieces = _PIECE.findall(text)
    for _ in range(rng.choice((1, 1, 2, 3))):
        tokens = [i for i, p in enumerate(pieces) if p.strip()]
        if not tokens:
            break
        at = rng.choice(tokens)
        if gentle and rng.random() < 0.9:
            pieces[at] = _kindly(rng, pieces[at], pieces, tokens)
            continue
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


def told(text: str, before: Analysis | None = None) -> list[str]:
    """What the language server says of a text, which it may have read by parts, without places."""
    analysis = Analysis(text, "net.relay", "utf-16", before)
    for offset in range(0, len(text), max(1, len(text) // 3)):
        for ask in (features.hover, features.definition, features.completion, features.signature):
            ask(analysis, offset)
    list(features.colors(analysis))
    list(features.hints(analysis, 0, len(text)))
    features.outline(analysis)
    return sorted(f"{d.code} {d.title}" for d in analysis.diagnostics)


def unsound(text: str, original: str = "") -> str | None:
    """What printing, formatting or editing a text does that it should not, or None."""
    try:
        opened = Analysis(original, "net.relay", "utf-16")
        if told(text, opened) != told(text):
            return "the language server says something else after an edit than of the same text when opened"
        try:
            node = parse(text, "mutant").value
        except RelayError:
            return None
        infer(node, fragment=not isinstance(node, IRModule))
        for style in ("lossless", "tvm"):
            try:
                printed = astext(node, style=style)
            except RelayError:
                continue  # a value that has no form in this style
            if style == "lossless":
                again = parse(printed, "print").value
                difference = structural_diff(node, again, map_free_vars=True)
                if difference is not None:
                    return f"print: {difference}"
                infer(again, fragment=not isinstance(again, IRModule))
                if astext(again) != printed:
                    return "print: no fixed point"
        try:
            made = format_text(text, "mutant")
        except RelayError as wrong:
            if any(d.code != "R0152" for d in wrong.diagnostics):  # an old call that has no short form today
                raise
        else:
            if format_text(made, "made") != made:
                return "fmt: no fixed point"
    except Exception as ours:
        return f"{type(ours).__name__}: {ours}"
    return None


def mutants(seed: int, count: int, gentle: bool = False) -> Iterator[tuple[str, str]]:
    """Texts, each with the one that it was made from."""
    rng = random.Random(seed)
    texts = originals()
    for _ in range(count):
        original = rng.choice(texts)
        yield mutant(rng, original, gentle), original


def main() -> None:
    count, seed = int(sys.argv[1]), int(sys.argv[2])
    folder = Path(tempfile.mkdtemp(prefix="mutants-"))
    wrong = errors = refused = 0
    for number, (text, original) in enumerate(mutants(seed, count, len(sys.argv) > 3)):
        last = folder / "last.relay"  # of a run that hangs
        last.write_text(text, "utf-8", "surrogatepass")
        faulthandler.dump_traceback_later(60, exit=True)
        what = problem(text) or unsound(text, original)
        faulthandler.cancel_dump_traceback_later()
        if what is not None:
            wrong += 1
            last.rename(folder / f"{number}.relay")
            (folder / f"{number}.original.relay").write_text(original, "utf-8", "surrogatepass")
            print(f"{folder}/{number}.relay: {what[:300]}", flush=True)
        else:
            n = sum(d.severity == "error" for d in said(text))
            errors += n
            refused += n > 0
    print(f"{count} mutants, {wrong} wrong answers; {refused} with errors, {errors / max(1, refused):.2f} errors each")


if __name__ == "__main__":
    main()
