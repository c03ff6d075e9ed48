"""Makes the pages of mkdocs that no file of docs/ has (operators, codes, grammar, changes), and prepares those of docs/."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import docs_reference
from mkdocs.plugins import event_priority

from relaylang.diagnostics.pages import PAGES as CODES
from relaylang.diagnostics.pages import readable
from relaylang.ops import FAMILIES, OPS
from relaylang.ops.record import Op
from relaylang.repl.opdoc import default_text, example, kind_text, parameters, type_rule

ROOT = Path(__file__).resolve().parent.parent


#: The titles of the families of operators, which are the files of `relaylang/ops`.
TITLES = {
    "tensor": "Elementwise",
    "transform": "Shape and order",
    "create": "New tensors",
    "join": "Joining and splitting",
    "indexing": "Selecting",
    "reduce": "Reductions",
    "nn_conv": "Convolutions",
    "nn_pool": "Pooling",
    "nn_dense": "Matrix products",
    "nn_sparse": "Sparse products",
    "nn_bitserial": "Products of few bits",
    "nn_contrib": "Prepared convolutions",
    "nn_norm": "Layers",
    "nn_space": "Padding and resizing",
    "qnn": "Quantised",
    "algorithm": "Sorting",
    "image": "Images",
    "vision": "Object detection",
    "dyn": "Computed shapes",
    "random": "Random numbers",
    "scatter": "Scattering and scans",
    "annotation": "Annotations",
    "device": "Devices and memory",
}


def operators_page() -> str:
    """The list of all operators. Each has the anchor that it had when one page held them all."""
    lines = ["# Operators", "", f"Relay has {len(OPS)} operators. `:doc NAME` in a session shows the same text.", ""]
    for family, title in TITLES.items():
        links = " · ".join(f"[{op.name}]({_file(family)}#{_anchor(op)}){{ #{_anchor(op)} }}" for op in _sorted(family))
        lines += [f"## [{title}]({_file(family)})", "", links, ""]
    return "\n".join(lines)


def family_page(family: str) -> str:
    """The reference of the operators of a family."""
    lines = [f"# {TITLES[family]}", "", *(f"[{op.name}](#{_anchor(op)}) ·" for op in _sorted(family))]
    lines[-1] = lines[-1].removesuffix(" ·")
    for op in _sorted(family):
        lines += ["", *_operator(op)]
    return "\n".join(lines)


def _file(family: str) -> str:
    return f"operators/{family}.md"


def _sorted(family: str) -> list[Op]:
    return sorted(FAMILIES[family], key=lambda op: op.name)


def _anchor(op: Op) -> str:
    return "op-" + op.name.replace(".", "-")


def _operator(op: Op) -> list[str]:
    lines = [f"## {op.name} {{ #{_anchor(op)} }}", "", "```relay", f"{op.name}({', '.join(parameters(op))})", "```", ""]
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
    "00": "Files",
    "01": "Syntax",
    "02": "Names",
    "03": "Types",
    "04": "Evaluation",
    "05": "Passes",
    "06": "Backends",
    "07": "The command line and the session",
    "08": "Import of networks",
    "09": "Faults of relaylang",
    "10": "Lints",
}
#: The languages of examples, by the kinds of pages.
_EXAMPLES = {
    "relay": "relay",
    "lint": "relay",
    "run": "relay",
    "session": "relay",
    "shell": "relay-console",
    "python": "python",
    "text": "text",
}


def _plain(text: str) -> str:
    """Text without the signs of HTML, outside of code."""
    return "".join(part if i % 2 else part.replace("<", "&lt;") for i, part in enumerate(re.split(r"(`[^`]*`)", text)))


def changes_page() -> str:
    """The changes of each version."""
    return (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


PAGES: dict[str, Callable[[], str]] = {
    "operators.md": operators_page,
    **{_file(family): partial(family_page, family) for family in TITLES},
    "grammar.md": grammar_page,
    "codes.md": codes_page,
    "changes.md": changes_page,
    "reference/index.md": docs_reference.index_page,
    **{file: partial(docs_reference.page_text, page) for file, page in docs_reference.pages().items()},
}
#: Pages that stand below another one in the contents.
BELOW = {
    "operators.md": [{title: _file(family)} for family, title in TITLES.items()],
    "reference/index.md": [{page.title: file} for file, page in docs_reference.pages().items()],
}


def on_config(config: Any) -> Any:
    """Add the pages of families of operators, and of the reference, to the contents."""
    for section in config["nav"]:
        for entry in (entry for part in section.values() if isinstance(part, list) for entry in part):
            for title, page in entry.items():
                entry[title] = [page, *BELOW[page]] if page in BELOW else page
    return config


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
        if entry["location"].startswith("operators/") and "#op-" in entry["location"]:
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
