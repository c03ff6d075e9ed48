"""Accelerators of TVM's UMA. `tests/tvm/test_as_tvm.py` runs this file."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relay
from tvm.relay.backend.contrib import uma
from tvm.relay.backend.contrib.uma.api.utils import PassPhase, uma_available
from tvm.relay.backend.contrib.uma.backend import UMABackend
from tvm.relay.dataflow_pattern import is_op, wildcard

SEEN: list[str] = []


@tvm.ir.transform.module_pass(opt_level=0)
class Note:
    """Notes its phase."""

    def __init__(self, phase: str) -> None:
        self.phase = phase

    def transform_module(self, mod: tvm.IRModule, ctx: Any) -> tvm.IRModule:
        SEEN.append(f"{self.phase} {len(mod.functions)}")
        return mod


class Adder(UMABackend):
    def __init__(self, merge: bool = True) -> None:
        super().__init__(merge)
        self._register_target_attr("lanes", default=4)
        for phase in (PassPhase.POST_PARTITIONING_0, PassPhase.PRE_PARTITIONING, PassPhase.POST_PARTITIONING_1):
            self._register_relay_pass(phase, Note(phase.name))
        self._register_pattern("add", is_op("add")(wildcard(), wildcard()), lambda call: call.args[0].checked_type.dtype == "float32")
        self._register_codegen(fmt="c", includes=lambda: "#include <stdint.h>\n#define STEP 1")

    @property
    def target_name(self) -> str:  # type: ignore[override]
        return "uma_adder"


def program() -> tvm.IRModule:
    x, y = (relay.var(name, shape=(4,)) for name in "xy")
    return tvm.IRModule.from_expr(relay.Function([x, y], relay.exp((x + y) + y)))


def test_an_accelerator_is_registered_partitioned_for_and_compiled() -> None:
    assert uma_available() and uma.UMABackend is UMABackend
    backend = Adder()
    backend.register()
    backend.register()
    assert "uma_adder" in tvm.target.Target.list_kinds()
    target = tvm.target.Target("uma_adder -lanes=8")
    assert target.attrs["lanes"] == 8 and tvm.target.Target("uma_adder").attrs["lanes"] == 4
    with pytest.raises(ValueError, match="the target uma_adder has no attribute width; it has lanes"):
        tvm.target.Target("uma_adder -width=8")
    assert relay.op.contrib.get_pattern_table("uma_adder")[0].name == "uma_adder.add"

    SEEN.clear()
    mod = backend.partition(program())
    assert SEEN == ["PRE_PARTITIONING 1", "POST_PARTITIONING_0 2", "POST_PARTITIONING_1 2"]
    assert [f.attrs["Compiler"] for g, f in mod.functions.items() if g.name_hint != "main"] == ["uma_adder"]

    @tvm.register_func("relay.ext.uma_adder")
    def code(func: relay.Function) -> str:
        return f"""int32_t {func.attrs["global_symbol"]}(const float* a, const float* b, float* out) {{
          for (int i = 0; i < 4; i += STEP) out[i] = a[i] + b[i] + b[i];
          return 0;
        }}"""

    lib = relay.build(mod, target=[target, tvm.target.Target("c")])
    x, y = np.float32([0, 1, 2, 3]), np.float32([1, 0, -1, 0.5])
    np.testing.assert_allclose(lib.run(x, y), np.exp(x + 2 * y), rtol=1e-6)
    np.testing.assert_allclose(relay.build(mod, tvm.target.Target("uma_adder", host="c")).run(x, y), np.exp(x + 2 * y), rtol=1e-6)


def test_parameters_become_constants_and_regions_may_stay_apart() -> None:
    mod = Adder(merge=False).partition(program(), {"y": np.zeros(4, "float32")})
    assert len(mod["main"].params) == 1 and len(mod.functions) == 3


def test_phases_over_tir_are_refused() -> None:
    backend = Adder()
    for call in (
        lambda: backend._register_tir_pass(PassPhase.TIR_PHASE_0, None),
        lambda: backend._register_operator_strategy("add", None),
        lambda: backend._register_relay_pass(PassPhase.TIR_PHASE_1, Note("")),
    ):
        with pytest.raises(tvm.TVMError, match=r"works on TIR, which is not here\n.*relay.ext.uma_adder") as caught:
            call()
        assert caught.value.diagnostics[0].code == "R0609"
    with pytest.raises(tvm.TVMError, match="no format llvm"):
        backend._register_codegen("llvm")
    backend._register_target_attr("wrong", None)
    with pytest.raises(ValueError, match="None is not supported"):
        backend.register()
