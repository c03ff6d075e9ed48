"""DefuseOps against FuseOps."""

from __future__ import annotations

from relaylang.ir.structural import assert_structural_equal
from relaylang.transform import PASSES, PassContext, Sequential
from tests.passes.texts import main, module


def test_defusing_undoes_fusing() -> None:
    mod = module(main("nn.relu(add(exp(%x), 1f))"))
    again = Sequential([PASSES["FuseOps"](), PASSES["DefuseOps"]()])
    with PassContext(opt_level=4):
        assert_structural_equal(again(mod), mod)
