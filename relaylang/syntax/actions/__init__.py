"""Text to IR: the actions of the grammar's rules.

A reading is put together from parts. Some hold its state: `Reports` (spans and diagnostics), `Locals`, `FunctionNames`,
`TypeNames`, `MetaValues`. The others make nodes: each is a class of actions for one topic, and takes the state it needs.
`ACTIONS` is the one table from the grammar's aliases to those actions; the parser's loop calls them through it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any as AnyValue

from relaylang.ir.expr import Expr, GlobalVar
from relaylang.ir.module import IRModule
from relaylang.ir.types import GlobalTypeVar
from relaylang.syntax.actions.attributes import AttributeActions
from relaylang.syntax.actions.calls import CallActions
from relaylang.syntax.actions.errors import ErrorActions
from relaylang.syntax.actions.expressions import ExpressionActions
from relaylang.syntax.actions.functions import FunctionActions
from relaylang.syntax.actions.globals import Callees, FunctionNames, TypeNames
from relaylang.syntax.actions.lists import ListActions, TextActions
from relaylang.syntax.actions.locals import Locals
from relaylang.syntax.actions.metavalues import MetaValues, ReadType, no_type
from relaylang.syntax.actions.operators import OperatorCalls
from relaylang.syntax.actions.patterns import MatchActions
from relaylang.syntax.actions.plain import PlainStatements
from relaylang.syntax.actions.reports import Reports
from relaylang.syntax.actions.statements import StatementActions
from relaylang.syntax.actions.types import DataTypeActions, TypeActions
from relaylang.syntax.tokens import TokenSource

#: An action as the loop calls it: the part's number and the function, whose first argument is that part.
Action = tuple[int, Callable[[AnyValue, AnyValue, int, int], AnyValue]]

#: The classes of actions, in the order of `Build.parts`.
PARTS: tuple[type, ...] = (
    ExpressionActions,
    CallActions,
    StatementActions,
    FunctionActions,
    TypeActions,
    AttributeActions,
    MatchActions,
    DataTypeActions,
    ListActions,
    TextActions,
    ErrorActions,
    PlainStatements,
)


def _actions() -> dict[str, Action]:
    table: dict[str, Action] = {}
    for number, part in enumerate(PARTS):
        for name, function in vars(part).items():
            if name.startswith("on_"):
                alias = name.removeprefix("on_")
                assert alias not in table, alias
                table[alias] = number, function
    return table


#: The actions by the aliases of the grammar's rules.
ACTIONS = _actions()


_LISTS = ListActions()


class Build:
    """One reading: its parts.

    `module` and `variables` are known from before, `functions_elsewhere` and `types_elsewhere` are defined by other parts of
    the same text. `meta` holds the metadata section's values; `read_type` reads a type in a comment.
    """

    __slots__ = ("errors", "functions", "locals", "meta", "operators", "parts", "reports", "text", "type_actions", "types")

    def __init__(
        self,
        source: TokenSource,
        tokens: Sequence[str],
        module: IRModule | None = None,
        variables: Mapping[str, Expr] | None = None,
        meta: Mapping[str, list[AnyValue]] | None = None,
        read_type: ReadType = no_type,
        functions_elsewhere: Mapping[str, GlobalVar] | None = None,
        types_elsewhere: Mapping[str, GlobalTypeVar] | None = None,
    ) -> None:
        self.reports = reports = Reports(source, tokens)
        self.locals = locals = Locals(reports, variables)
        self.functions = functions = FunctionNames(reports, module, functions_elsewhere)
        self.types = types = TypeNames(reports, module, types_elsewhere)
        self.meta = values = MetaValues(reports, types, meta, read_type)
        callees = Callees(reports, locals, functions, types)
        self.type_actions = type_actions = TypeActions(reports, types, values)
        attributes = AttributeActions(reports, types, values)
        self.operators = operators = OperatorCalls(reports, values, attributes)
        self.text = TextActions(locals)
        statements = StatementActions(reports, locals, type_actions, attributes)
        function_actions = FunctionActions(reports, locals, functions, types, attributes, values)
        matches = MatchActions(reports, locals, types)
        self.errors = ErrorActions(reports, locals, functions, types, statements, function_actions, matches)
        self.parts: tuple[AnyValue, ...] = (
            ExpressionActions(reports, locals, functions, types, callees, operators, values),
            CallActions(reports, callees, operators, values),
            statements,
            function_actions,
            type_actions,
            attributes,
            matches,
            DataTypeActions(reports, types),
            _LISTS,
            self.text,
            self.errors,
            PlainStatements(reports, locals),
        )

    def finish(self) -> None:
        """At the text's end, report the deferred diagnostics and the names that nothing defines."""
        self.reports.finish()
        self.meta.finish()
        self.types.finish_constructors()
        self.functions.finish()
        self.types.finish()


__all__ = ["ACTIONS", "PARTS", "Action", "Build"]
