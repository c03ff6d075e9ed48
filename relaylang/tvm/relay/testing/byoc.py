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
        operand = self.visit(expr)
        return op.annotation.compiler_begin(operand, "ccompiler") if always or isinstance(operand, Var) else operand

    def visit_call(self, call: Call) -> Expr:
        name = call.op.name if isinstance(call.op, Op) else ""
        if name == _END:
            self._inside, self._begun = True, False
            annotated: Expr = op.multiply(*[self._operand(a) for a in call.args])
            annotated = op.annotation.compiler_end(annotated, "ccompiler") if self._begun else annotated
            self._inside = False
            return annotated
        if name == _MIDDLE and self._inside:
            return op.subtract(*[self._operand(a) for a in call.args])
        if name == _BEGIN and self._inside:
            annotated = op.add(*[self._operand(a, always=True) for a in call.args])
            self._begun = True
            return annotated
        result: Expr = super().visit_call(call)
        return result


__all__ = ["CcompilerAnnotator"]
