"""Makes the pages of the Python reference for mkdocs: which public names a page has, and where each is defined.

mkdocstrings writes the signatures and docstrings, from the files of the installed package.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import NamedTuple

from relaylang._names import NAMES
from relaylang.passes import PASSES
from relaylang.tvm import transform


class Page(NamedTuple):
    """A page of the reference: its title, the module that users import the names from, and its names in order."""

    title: str
    module: str
    names: tuple[str, ...]


#: The names of the top that have a page of their own, by pages.
_TEXT = "parse parse_expr fromtext astext ParseResult Diagnostic RelayError infer".split()
_RUN = "build create_executor evaluate bind load_param_dict save_param_dict".split()
_NOTEBOOK = ("load_ipython_extension", "unload_ipython_extension")
#: A value in place of a class or a function: its page is that of its class.
_VALUES = ("ANY", "PASSES")


def pages() -> dict[str, Page]:
    """The pages of the reference by their files."""
    nodes = [name for name in NAMES if name not in (*_TEXT, *_RUN, *_NOTEBOOK, *_VALUES, "TypeKind")]
    others = [name for name in transform.names() if name not in (*PASSES, *_VALUES)]
    return {
        "reference/text.md": Page("Text and types", "relaylang", tuple(_TEXT)),
        "reference/nodes.md": Page("Nodes", "relaylang", tuple(nodes)),
        "reference/passes.md": Page("Passes by name", "relaylang.transform", tuple(PASSES)),
        "reference/transform.md": Page("Running passes", "relaylang.transform", tuple(others)),
        "reference/analysis.md": _all("Analyses", "relaylang.analysis"),
        "reference/patterns.md": _all("Patterns", "relaylang.dataflow_pattern"),
        "reference/frontend.md": _all("Importers", "relaylang.frontend"),
        "reference/quantize.md": _all("Quantisation", "relaylang.quantize"),
        "reference/run.md": Page("Building and running", "relaylang", tuple(_RUN)),
        "reference/vm.md": _all("The virtual machine", "relaylang.vm"),
    }


def _all(title: str, module: str) -> Page:
    """A page of all public names of a module."""
    return Page(title, module, tuple(sorted(importlib.import_module(module).__all__)))


def index_page() -> str:
    """The list of all names of the reference."""
    lines = [
        "# Python reference",
        "",
        "Names come from `relaylang` and its modules, as TVM's did from `tvm.relay`.",
        "[Operators](../operators.md) are functions, too: `relaylang.nn.conv2d`.",
        "",
    ]
    for file, page in pages().items():
        own = file.rpartition("/")[2]
        links = " · ".join(f"[{name}]({own}#{page.module}.{name})" for name in page.names)
        lines += [f"## [{page.title}]({own})", "", f"`from {page.module} import ...`", "", links, ""]
    return "\n".join(lines)


def page_text(page: Page) -> str:
    """A page with an instruction to mkdocstrings for each name."""
    lines = [f"# {page.title}", "", f"`from {page.module} import ...`", ""]
    shown: dict[str, str] = {}
    for name, home in homes(page):
        lines += [f'<span id="{page.module}.{name}"></span>', ""]
        if home in shown:
            lines += [f"## {name}", "", f"Another name of [{shown[home]}](#{page.module}.{shown[home]}).", ""]
            continue
        shown[home] = name
        lines += [f"::: {home}", "    options:", f"      heading: {name}", f"      toc_label: {name}"]
        lines += ["      members: true", ""] if home in WITH_METHODS else [""]
    return "\n".join(lines)


def homes(page: Page) -> Iterator[tuple[str, str]]:
    """Each name of a page with the place of its definition."""
    module = importlib.import_module(page.module)
    for name in page.names:
        value = getattr(module, name)
        yield name, f"{value.__module__}.{value.__qualname__}"


#: Classes whose methods are for users.
WITH_METHODS = frozenset(
    "relaylang.ir.module.IRModule relaylang.ir.scope_builder.ScopeBuilder relaylang.diagnostics.value.Diagnostic "
    "relaylang.tvm.expr_functor.ExprFunctor relaylang.tvm.expr_functor.ExprMutator relaylang.tvm.prelude.Prelude "
    "relaylang.passes.context.PassContext relaylang.passes.manager.Pass relaylang.passes.context.PassInstrument "
    "relaylang.passes.instruments.PassTimingInstrument relaylang.patterns.language.DFPattern "
    "relaylang.patterns.rewrite.DFPatternCallback relaylang.patterns.graph.Graph relaylang.patterns.groups.Group "
    "relaylang.tvm.runtime.vm.Executable relaylang.tvm.runtime.vm.VirtualMachine relaylang.tvm.vm.VMCompiler".split()
)
