"""Makes pages of operators, of codes and of the grammar for mkdocs, and prepares those of docs/."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

from mkdocs.plugins import event_priority

from relaylang.diagnostics.pages import PAGES as CODES
from relaylang.diagnostics.pages import readable
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
    order = sorted(families, key=lambda family: (family not in _FIRST, family))
    for family in order:
        links = " · ".join(f"[{op.name}](#{_anchor(op)})" for op in sorted(families[family], key=lambda o: o.name))
        lines += [f"**{family}**: {links}", ""]
    for family in order:
        lines += [f"## {family}", ""]
        for op in sorted(families[family], key=lambda o: o.name):
            lines += [*_operator(op), ""]
    return "\n".join(lines)


#: The groups that most programs use.
_PLAIN = "names without a dot"
_FIRST = (_PLAIN, "nn", "qnn")


def _anchor(op: Op) -> str:
    return "op-" + op.name.replace(".", "-")


def _family(op: Op) -> str:
    """The group of an operator: `nn.conv2d` belongs to nn, `add` to the names without a dot."""
    return op.name.partition(".")[0] if "." in op.name else _PLAIN


def _operator(op: Op) -> list[str]:
    lines = [f"### {op.name} {{ #{_anchor(op)} }}", "", "```relay", f"{op.name}({', '.join(parameters(op))})", "```", ""]
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


def codes_page() -> str:
    """The pages of all codes, as `relay explain` shows them, in groups by their hundreds."""
    lines = ["# Codes", "", f"Diagnostics have {len(CODES)} codes. `relay explain R0301` shows the same text.", ""]
    for code, page in sorted(CODES.items()):
        group = _GROUPS[code[1:3]]
        if f"## {group}" not in lines:
            lines += [f"## {group}", ""]
        lines += [f"### {code}: {_plain(page.title)} {{ #{code.lower()} }}", ""]
        lines += [_plain(part) for text in page.text.strip().split("\n\n") for part in (" ".join(text.split()), "")]
        for name, shown in (("Wrong", page.wrong), ("Right", page.right)):
            language = _EXAMPLES[page.kind] if readable(shown) == shown.strip("\n") else "text"
            lines += [f"{name}:", "", f"```{language}", readable(shown), "```", ""]
    return "\n".join(lines)


#: The parts that raise codes, by the hundreds of these.
_GROUPS = {
    "00": "Files", "01": "Syntax", "02": "Names", "03": "Types", "04": "Evaluation", "05": "Passes", "06": "Backends",
    "07": "The command line and the session", "08": "Import of networks", "09": "Faults of relaylang", "10": "Lints",
}  # fmt: skip
#: The languages of examples, by the kinds of pages.
_EXAMPLES = {
    "relay": "relay", "lint": "relay", "run": "relay", "session": "relay",
    "shell": "relay-console", "python": "python", "text": "text",
}  # fmt: skip


def _plain(text: str) -> str:
    """Text without the signs of HTML, outside of code."""
    return "".join(part if i % 2 else part.replace("<", "&lt;") for i, part in enumerate(re.split(r"(`[^`]*`)", text)))


PAGES = {"operators.md": operators_page, "grammar.md": grammar_page, "codes.md": codes_page}


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages to the files of mkdocs."""
    file_class = inspect.getmodule(type(files)).File  # type: ignore[union-attr]
    for name, make in PAGES.items():
        files.append(file_class.generated(config, name, content=make()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Prepare a page of docs/ for the site: its links, its code blocks, its measured tables."""
    if page.file.src_uri == "index.md":
        page.meta["hide"] = ["navigation", "toc"]  # the first page has its own links, and pictures that want room
    markdown = _TABLE.sub(lambda found: _measured(found[1], found[2]), markdown)
    # the built pages stand alone, so that links out of docs/ become names
    markdown = re.sub(r"\[([^\]]+)\]\(\.\./([^)]+)\)", _named, markdown)
    markdown = markdown.replace("```console\n", "```relay-console\n").replace("```relay-wrong\n", "```relay\n")
    if page.file.src_uri != "grammar.md":
        markdown = _FENCED.sub(lambda found: f"```{found[1] or _language(found[2])}\n{found[2]}```\n", markdown)
    return _INDENTED.sub(lambda found: found[1] + _fenced(found[2]), markdown)


@event_priority(-50)  # between the plugins that write and copy the index
def on_post_build(config: Any) -> None:
    """Put the operator whose name is asked for first: `relu` finds `nn.relu` in front of `nn.leaky_relu`."""
    path = Path(config.site_dir) / "search" / "search_index.json"
    index = json.loads(path.read_text(encoding="utf-8"))
    for entry in index["docs"]:
        if entry["location"].startswith("operators.html#op-"):
            name = entry["title"].rpartition(".")[2]
            entry["boost"] = 16 / len(name.split("_")) ** 2 / (1 if entry["title"] in (name, f"nn.{name}") else 2)
        elif entry["location"].startswith("passes.html#"):
            entry["boost"] = 4  # `FuseOps` finds its effect in front of its times
    path.write_text(json.dumps(index, separators=(",", ":")), encoding="utf-8")


def _named(link: re.Match[str]) -> str:
    return f"`{link[2]}`" if link[1].strip("`") == link[2] else f"{link[1]} (`{link[2]}`)"


_TABLE = re.compile(r"<!-- measured: (\S+) (.+) -->")
#: A block of code by its indent, behind a paragraph that is no item of a list.
_INDENTED = re.compile(r"(^(?![ \t]|[-*] |\d+\. )[^\n]*\n\n)((?:    [^\n]*\n|\n(?=    ))+)", re.M)
#: A fenced block; `text` is no language.
_FENCED = re.compile(r"^```(?:text|(\S+)|)\n(.*?)^```\n", re.M | re.S)
#: The language of a block without one, by its lines; the first that fits.
_LANGUAGES = (
    ("diff", re.compile(r"^@@ ", re.M)),
    ("relay-console", re.compile(r"^\$ |error\[R|warning\[R", re.M)),
    ("json", re.compile(r'\A\{\s*"')),
    ("ini", re.compile(r"\A\[[\w.]+\]$", re.M)),
    ("c", re.compile(r"^#include |^struct \w+ ", re.M)),
    ("relay", re.compile(r'^\s*(?:#\[version|def @|fn \(|let %|%\w+ = |type \w+ ?[={\[]|import "|// [A-Z]+:)', re.M)),
    ("pycon", re.compile(r"^>>> ", re.M)),
    ("python", re.compile(r"^(?:import|from|def|class|with|@)\b|\brelay\.[\w.]+\(|^\w+ = torch\.", re.M)),
    ("sh", re.compile(r"^(?:relay|pip|make|python|cmake|ninja|cc|cd|tar|tvmc|arm-none-eabi-gcc|[A-Z_]+=\S+) ", re.M)),
    ("lua", re.compile(r"^vim\.", re.M)),
    ("vim", re.compile(r"^autocmd ", re.M)),
    ("elisp", re.compile(r"^\(define-", re.M)),
    ("relay", re.compile(r"^q?nn\.\w+\(", re.M)),
)


def _fenced(block: str) -> str:
    text = "\n".join(line[4:] for line in block.rstrip().split("\n"))
    return f"```{_language(text)}\n{text}\n```\n"


def _language(text: str) -> str:
    return next((name for name, lines in _LANGUAGES if lines.search(text)), "text")


def _measured(file: str, heading: str) -> str:
    """The first table below a heading of a file of benchmarks/results."""
    text = (ROOT / "benchmarks" / "results" / file).read_text(encoding="utf-8")
    _, found, rest = text.partition(f"# {heading}\n")
    table = re.search(r"^\|.*?(?=\n\n|\Z)", rest, re.M | re.S)
    if not found or table is None:
        raise ValueError(f"benchmarks/results/{file} has no table below {heading!r}")
    return table[0].rstrip()
