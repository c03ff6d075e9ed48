"""The linker: each function becomes code when it is first called.

Slots hold the arguments, then the captured values, then constants and temporaries. A value larger than a few numbers is
dropped behind its last use.
"""

from __future__ import annotations

from collections import deque

from relaylang.interpreter.assemble import assemble
from relaylang.interpreter.code import Block, Code
from relaylang.interpreter.names import Names
from relaylang.interpreter.onlookers import Onlookers
from relaylang.interpreter.translate import Translation
from relaylang.ir.bulk import gc_paused


class Linker:
    """Makes code of a program's functions, for the onlookers of a run."""

    def __init__(self, names: Names, onlookers: Onlookers) -> None:
        self.names = names
        self.onlookers = onlookers

    def link(self, code: Code) -> Block:
        """Translate a function and those inside it. Returns its first block."""
        with gc_paused():
            todo = deque([Translation(code, None, self.names, self.onlookers)])
            functions: list[Translation] = []
            while todo:
                function = todo.popleft()
                function.run()
                functions.append(function)
                todo.extend(function.inner)
            for function in reversed(functions):
                function.resolve_captures()
                entry = assemble(function, self.onlookers)
            return entry


__all__ = ["Linker"]
