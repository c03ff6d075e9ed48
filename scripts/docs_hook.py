"""Makes two pages for mkdocs: the operators from the registry, and the grammar from relay.lark."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

from relaylang.ops import OPS
from relaylang.ops.record import Op
from relaylang.repl.opdoc import default_text, example, kind_text, parameters, type_rule

ROOT = Path(__file__).resolve().parent.parent


def operators_page() -> str:
    """The reference of all operators, in groups by the part of the name before the dot."""
    families: dict[str, list[Op]] = {}
    for op in OPS.values():
        families.setdefault(_family(op), []).append(op)
    lines = ["# Operators", "", f"Relay has {len(OPS)} operators. `:doc NAME` in a session shows the same text.", ""]
    for family in sorted(families):
        lines += [f"## {family}", ""]
        for op in sorted(families[family], key=lambda o: o.name):
            lines += [*_operator(op), ""]
    return "\n".join(lines)


def _family(op: Op) -> str:
    """The group of an operator: `nn.conv2d` belongs to nn, `add` to the names without a dot."""
    return op.name.partition(".")[0] if "." in op.name else "names without a dot"


def _operator(op: Op) -> list[str]:
    lines = [f"### {op.name}", "", "```text", f"{op.name}({', '.join(parameters(op))})", "```", ""]
    said = " ".join(s for s in (op.doc, type_rule(op)) if s)
    if said:
        lines += [said.replace("<", "&lt;"), ""]
    if op.schema:
        lines += ["| attribute | type | value |", "|---|---|---|"]
        for f in op.schema.values():
            lines.append(f"| `{f.name}` | {kind_text(f)} | {default_text(f).replace('|', chr(92) + '|')} |")
        lines.append("")
    shown = example(op)
    if shown is not None:
        lines += [f"```{shown.language}", shown.text, f"{'//' if shown.language == 'relay' else '#'} : {shown.result}", "```", ""]
    return lines


def grammar_page() -> str:
    """The grammar in the syntax of Lark."""
    text = (ROOT / "grammar/relay.lark").read_text(encoding="utf-8")
    return (
        "# Grammar\n\nThe parser's tables come from `grammar/relay.lark`, by [Lark](https://github.com/lark-parser/lark). "
        "[The language](language.md) explains the meaning.\n\n"
        f"```text\n{text.rstrip()}\n```\n"
    )


PAGES = {"operators.md": operators_page, "grammar.md": grammar_page}


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages to the files of mkdocs."""
    file_class = inspect.getmodule(type(files)).File  # type: ignore[union-attr]
    for name, make in PAGES.items():
        files.append(file_class.generated(config, name, content=make()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Replace links to files outside of docs/ by their names, because the built pages stand alone."""
    return re.sub(r"\[([^\]]+)\]\(\.\./([^)]+)\)", r"\1 (`\2`)", markdown)
