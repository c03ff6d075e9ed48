"""Whole networks whose batch, height and width are unknown, beside the same networks compiled for known extents."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from relaylang.backends import compile_module
from relaylang.backends.vm import compile_vm
from relaylang.ir import ANY, Function, IRModule, TensorType, Var, substitute
from relaylang.ir.binding import bind_params
from relaylang.typing import check

#: Networks, the axes of their data that are unknown, and options that make them quick.
NETWORKS: dict[str, tuple[str, tuple[int, ...], dict[str, Any]]] = {
    "dqn": ("dqn", (0,), {}),
    "mlp": ("mlp", (0,), {}),
    "dcgan": ("dcgan", (0,), {}),
    "vgg": ("vgg", (0,), {"num_layers": 11, "image_shape": (3, 32, 32)}),
    "mobilenet": ("mobilenet", (0, 2, 3), {"image_shape": (3, 64, 64)}),
    "squeezenet": ("squeezenet", (0, 2, 3), {"image_shape": (3, 64, 64)}),
    "resnet18": ("resnet", (0, 2, 3), {"image_shape": (3, 64, 64)}),
    "resnet20": ("resnet", (0, 2, 3), {"num_layers": 20, "image_shape": (3, 28, 28)}),
    "resnet_3d": ("resnet_3d", (0, 2, 3, 4), {"image_shape": (3, 8, 32, 32)}),
    "densenet": ("densenet", (0, 2, 3), {}),
    "inception": ("inception_v3", (0, 2, 3), {}),
}


def opened(mod: IRModule, axes: tuple[int, ...]) -> IRModule:
    """A network with unknown extents in some axes of its data. Its nodes are the network's own no longer."""
    main = mod["main"]
    data = main.params[0]
    shape = [ANY if axis in axes else extent for axis, extent in enumerate(data.checked_type.shape)]
    unknown = Var(data.name_hint, TensorType(shape, data.checked_type.dtype))
    made = IRModule.from_expr(Function([unknown, *main.params[1:]], substitute(main.body, {data: unknown})))
    check(made, fresh=True)
    return made


@pytest.mark.sample(3)
@pytest.mark.sweep
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_of_unknown_extents(name: str) -> None:
    """They differ in the order of sums, by which rounding differs; no operator is left to the interpreter."""
    network, axes, options = NETWORKS[name]
    workload = importlib.import_module(f"relaylang.tvm.relay.testing.{network}").get_workload
    known, given = workload(batch_size=2, **options)
    params = {key: value.numpy() for key, value in given.items()}
    made = compile_vm(bind_params(opened(workload(batch_size=2, **options)[0], axes), params), entries=["main"])
    data = np.random.default_rng(0).random([int(n) for n in known["main"].params[0].checked_type.shape], "float32")
    found = np.asarray(made.call("main", (data,)))
    assert made.loaded.hosts == {}
    wanted = np.asarray(compile_module(known, "c", params=params).run(data))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-6 * float(np.abs(wanted).max()))
