"""Diagnostics as `tvm.ir.diagnostics` shows them: a function may take the place of what renders them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from relaylang.diagnostics import Diagnostic, RelayError, render


class DiagnosticContext:
    """The diagnostics of one error, each with a `message`."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = [_Shown(d) for d in diagnostics]


class _Shown:
    """A diagnostic with the names that TVM's have."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        self.diagnostic = diagnostic
        self.span = diagnostic.span
        self.level = diagnostic.severity

    @property
    def message(self) -> str:
        """The title and the notes."""
        return "\n".join((self.diagnostic.title, *self.diagnostic.notes))


class DiagnosticRenderer:
    """Calls a function for the diagnostics of an error."""

    def __init__(self, render_func: Callable[[DiagnosticContext], Any]) -> None:
        self.render_func = render_func

    def render(self, diag_ctx: DiagnosticContext) -> None:
        """Show the diagnostics."""
        self.render_func(diag_ctx)


def _print(diag_ctx: DiagnosticContext) -> None:
    for shown in diag_ctx.diagnostics:
        print(render(shown.diagnostic))


_DEFAULT = DiagnosticRenderer(_print)
_current: list[DiagnosticRenderer] = []


def get_renderer() -> DiagnosticRenderer:
    """The renderer that was set last, or one that prints."""
    return _current[-1] if _current else _DEFAULT


def override_renderer(render_func: Callable[[DiagnosticContext], Any] | None) -> None:
    """Let a function show the diagnostics of readers, checks and passes before they raise; None ends that."""
    _current[:] = [DiagnosticRenderer(render_func)] if render_func is not None else []


def show(wrong: RelayError) -> None:
    """Show an error's diagnostics where a renderer is set."""
    if _current:
        _current[-1].render(DiagnosticContext(wrong.diagnostics))


__all__ = ["DiagnosticContext", "DiagnosticRenderer", "get_renderer", "override_renderer"]
