"""Programs with a few tokens deleted, doubled, swapped or replaced, through every verb that reads a text.

The reader reports the errors. Texts without errors are checked, printed in both styles, read again, formatted, and
edited in the language server. `python -m tests.syntax.mutants 5000 7` tries 5000 with seed 7 and shows the failures.
With a third argument, `gently`, most of them can still be read.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gzip
import json
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from relaylang.diagnostics import Diagnostic, RelayError, render
from relaylang.diagnostics.export import as_json
from relaylang.ir import Expr, IRModule
from relaylang.lsp import features
from relaylang.lsp.analysis import Analysis
from relaylang.lsp.completion import completion
from relaylang.syntax import astext, parse
from relaylang.testing.generators.mutants import mutant
from relaylang.testing.roundtrip import formats_once, reads_back
from relaylang.typing import infer
from relaylang.typing.partial import all_errors
from tests.shared import CORPUS, FRAGMENTS, GOLDEN, ROOT

_LONGEST = 12_000


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


def said(text: str) -> list[Diagnostic]:
    """What the reader and the checker say of a text. Raises any error but `RelayError`."""
    try:
        result = parse(text, "mutant")
    except RelayError as wrong:
        return all_errors(wrong)
    node: IRModule | Expr = result.value
    return infer(node, fragment=not isinstance(node, IRModule))


def problem(text: str) -> str | None:
    """The fault of the answer to a text, or None."""
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
        for ask in (features.hover, features.definition, features.signature):
            ask(analysis, offset)
        completion(text, offset, analysis)
    list(features.colors(analysis, 0, len(text)))
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
        with contextlib.suppress(RelayError):  # a value that has no form in this style
            astext(node, style="tvm")
        try:
            printed, again = reads_back(node)
        except RelayError:
            pass  # nodes of two metadata sections
        else:
            infer(again, fragment=not isinstance(again, IRModule))
            if astext(again) != printed:
                return "print: no fixed point"
        formats_once(text)
    except Exception as ours:
        return f"{type(ours).__name__}: {ours}"
    return None


def mutants(seed: int, count: int, gentle: bool = False) -> Iterator[tuple[str, str]]:
    """Texts, each with its original."""
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
