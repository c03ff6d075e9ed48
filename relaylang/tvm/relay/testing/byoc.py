"""An annotator for tests of external code generators."""

from __future__ import annotations

from relaylang.ir import Call, Expr, Var
from relaylang.ops.record import Op
from relaylang.tvm import op
from relaylang.tvm.expr_functor import ExprMutator

#: The operators of the region, and what starts them: `multiply` ends the region, `add` begins it.
_BEGIN, _MIDDLE, _END = "add", "subtract", "multiply"


class CcompilerAnnotator(ExprMutator):
    """Marks regions of add, subtract and multiply, from the sum to the product, for the compiler "ccompiler"."""

    def __init__(self) -> None:
        super().__init__()
        self._inside = False
        self._begun = False

    def _operand(self, expr: Expr, always: bool = False) -> Expr:
        made = self.visit(expr)
        return op.annotation.compiler_begin(made, "ccompiler") if always or isinstance(made, Var) else made

    def visit_call(self, call: Call) -> Expr:
        name = call.op.name if isinstance(call.op, Op) else ""
        if name == _END:
            self._inside, self._begun = True, False
            made: Expr = op.multiply(*[self._operand(a) for a in call.args])
            made = op.annotation.compiler_end(made, "ccompiler") if self._begun else made
            self._inside = False
            return made
        if name == _MIDDLE and self._inside:
            return op.subtract(*[self._operand(a) for a in call.args])
        if name == _BEGIN and self._inside:
            made = op.add(*[self._operand(a, always=True) for a in call.args])
            self._begun = True
            return made
        result: Expr = super().visit_call(call)
        return result


__all__ = ["CcompilerAnnotator"]
