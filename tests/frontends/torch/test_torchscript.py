"""TorchScript archives: traced, scripted and quantised networks compute what torch computes."""

from __future__ import annotations

import importlib.util
import io
import warnings
from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.frontends.common import Imported
from relaylang.frontends.formats import format_of
from relaylang.frontends.options import Options
from relaylang.frontends.torch import import_pytorch
from relaylang.interpreter.evaluate import Evaluator
from relaylang.ir.structural import structural_equal
from tests.cli.command import relay as command
from tests.frontends import networks as real_networks
from tests.shared import ROOT

torch = pytest.importorskip("torch")
networks = pytest.importorskip("tests.frontends.torch.networks")
nn, F = torch.nn, torch.nn.functional

from tests.frontends.torch.test_networks import same, values  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
#: Networks whose Python code torch.jit.script takes.
SCRIPTED = ["resnet18", "mobilenet", "vision", "gpt", "tagger"]


def saved(module: Any) -> bytes:
    """The bytes of an archive."""
    buffer = io.BytesIO()
    torch.jit.save(module, buffer)
    return buffer.getvalue()


def traced(model: Any, inputs: tuple[Any, ...]) -> Any:
    """A traced module."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.trace(model, inputs, check_trace=False)


def imported(module: Any, inputs: tuple[Any, ...], **more: Any) -> Imported:
    """The program of a script module, for the shapes of these inputs."""
    names = [f"in{i}" for i in range(len(inputs))]
    shapes = {n: tuple(i.shape) for n, i in zip(names, inputs)}
    dtypes = {n: str(i.dtype).removeprefix("torch.") for n, i in zip(names, inputs)}
    made = import_pytorch(saved(module), Options(shapes, dtypes, **more), "net.pt", names)
    assert relay.infer(made.module, fresh=True) == []
    return made


def check(module: Any, *inputs: Any) -> None:
    """The imported module computes what torch computes."""
    with torch.no_grad():
        wanted = module(*inputs)
    same(values(imported(module, inputs).module, inputs), wanted)


def script(function: Any) -> Any:
    """A module whose forward is a function of one or two tensors."""

    class Plain(nn.Module):
        def __init__(self) -> None:
            super().__init__()

    Plain.forward = function
    return torch.jit.script(Plain())


@pytest.mark.parametrize("name", networks.NETWORKS)
def test_a_traced_network_computes_what_torch_computes(name: str) -> None:
    torch.manual_seed(1)
    make, feed, _ = networks.NETWORKS[name]
    model, inputs = make().eval(), feed()
    made = imported(traced(model, inputs), inputs)
    assert structural_equal(relay.parse(made.module.astext()), made.module)
    same(values(made.module, inputs), model(*inputs))


@pytest.mark.parametrize("name", SCRIPTED)
def test_a_scripted_network_computes_what_torch_computes(name: str) -> None:
    torch.manual_seed(1)
    make, feed, _ = networks.NETWORKS[name]
    model, inputs = make().eval(), feed()
    check(torch.jit.script(model), *inputs)


@pytest.mark.parametrize("way", ["traced", "scripted"])
@pytest.mark.parametrize("name", [n for n, (_, _, axes) in networks.NETWORKS.items() if axes is not None])
def test_a_batch_of_any_extent(name: str, way: str) -> None:
    if way == "scripted" and name not in SCRIPTED:
        pytest.skip("torch.jit.script does not take its code")
    torch.manual_seed(1)
    make, feed, _ = networks.NETWORKS[name]
    model, inputs = make().eval(), feed()
    module = traced(model, inputs) if way == "traced" else torch.jit.script(model)
    names = [f"in{i}" for i in range(len(inputs))]
    shapes = {n: (relay.ir.ANY, *i.shape[1:]) for n, i in zip(names, inputs)}
    dtypes = {n: str(i.dtype).removeprefix("torch.") for n, i in zip(names, inputs)}
    mod = import_pytorch(saved(module), Options(shapes, dtypes), "net.pt", names).module
    more = tuple([torch.cat([i, i[:1]]) for i in inputs])
    same(values(mod, more), module(*more))


def test_an_archive_is_recognised_and_keeps_the_names_of_weights() -> None:
    make, feed, _ = networks.NETWORKS["resnet18"]
    model, inputs = make().eval(), feed()
    module = traced(model, inputs)
    found = format_of(saved(module))
    assert found is not None and found.name == "pytorch"
    mod, params = relay.frontend.from_pytorch(module, [("image", tuple(inputs[0].shape))])
    assert mod["main"].params[0].name_hint == "image"
    assert set(params) == {n for n, v in model.state_dict().items() if v.numel() > 1}
    assert np.array_equal(params["0.weight"], model[0].weight.detach().numpy())
    half, _ = relay.frontend.from_pytorch(saved(module), [("image", ((1, 3, 32, 32), "float32"))])
    assert str(half["main"].params[0].checked_type) == "Tensor[(1, 3, 32, 32), float32]"


def test_shapes_are_needed() -> None:
    module = script(_two)
    for options, said in (
        (Options(), "no shapes of inputs: x, y"),
        (Options({"x": (1,)}), "no shapes of inputs: y"),
        (Options({"z": (1,)}), "has no input z"),
    ):
        with pytest.raises(RelayError) as raised:
            import_pytorch(saved(module), options, "net.pt")
        assert raised.value.diagnostics[0].code == "R0804" and said in str(raised.value)


def _two(self: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x + y


def _under_a_condition(self: Any, x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    if bool(x.sum() > 0):
        y = y + 1
        z = torch.relu(x)
    else:
        z = -x
    return y * z


def _early(self: Any, x: torch.Tensor) -> torch.Tensor:
    if bool(x.sum() > 0):
        return x + 1
    for i in range(3):
        x = x * 2 + i
    return x


def _lists(self: Any, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    parts: list[torch.Tensor] = []
    for row in x.unbind(0):
        if row.dim() == 1:
            parts.append(row * len(parts))
    while len(parts) > 2:
        parts.pop()
    return torch.stack(parts), torch.cat(parts)


def _in_place(self: Any, x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y.add_(1)
    y[0] = 3.0
    y[:, 1] *= 2
    y.view(-1)[2:4].mul_(5)
    z = y.t()
    y.relu_()
    return z + 1


def _refused(self: Any, x: torch.Tensor) -> torch.Tensor:
    if bool(x.sum() > 1e9):
        raise ValueError("too large")
    assert x.dim() == 2
    return x + 1


def _sizes(self: Any, x: torch.Tensor) -> torch.Tensor:
    n = x.size(0) * x.shape[1]
    y = x.view(n // 2, -1)
    ramp = torch.arange(y.size(1), dtype=torch.float32)
    return y * ramp + torch.zeros(y.shape[0], 1) + torch.full([1], 0.5) + float(n) / 3


def _until(self: Any, x: torch.Tensor) -> tuple[torch.Tensor, int]:
    turns = 0
    while bool(x.abs().max() < 100) and turns < 50:
        x = x * 1.5 + 0.25
        turns += 1
    return x, turns


def _rows(self: Any, x: torch.Tensor) -> torch.Tensor:
    total = torch.zeros(x.size(1))
    for i in range(x.size(0)):
        if i % 2 == 0:
            total = total + x[i] * i
    return total


def test_loops_of_unknown_length() -> None:
    module, x = script(_until), torch.arange(6.0).reshape(2, 3)
    found = values(imported(module, (x,)).module, (x,))
    wanted = module(x)
    same(found[:1], wanted[0])
    assert int(found[1]) == wanted[1]
    module = script(_rows)
    mod = import_pytorch(saved(module), Options({"x": (relay.ir.ANY, 3)})).module
    for count in (1, 4):
        x = torch.arange(3.0 * count).reshape(count, 3) / 7
        same(values(mod, (x,)), module(x))


def _dicts(self: Any, x: torch.Tensor) -> torch.Tensor:
    pairs = [("a", x), ("b", x * 2)]
    named = dict([(k, v) for k, v in pairs])
    named["c"] = named["a"] + 1
    return torch.stack([v for v in named.values()]) + named["b"]


def _joined_lists(self: Any, x: torch.Tensor) -> torch.Tensor:
    twice = [x, x + 1] * 2
    return torch.stack((twice + [x * 3])[1:4])


def _extent(boxes: torch.Tensor | list[torch.Tensor]) -> int:
    if isinstance(boxes, (list, tuple)):
        return boxes[0].size(1)
    else:
        return boxes.size(0)


def _kinds(self: Any, x: torch.Tensor) -> torch.Tensor:
    return x * _extent(x) + _extent([x, x])


@pytest.mark.parametrize("function", [_dicts, _joined_lists, _kinds, _under_a_condition, _early, _lists, _in_place, _refused, _sizes])
def test_code_is_evaluated(function: Any) -> None:
    module = script(function)
    for sign in (1, -1):
        check(module, sign * torch.arange(12.0).reshape(3, 4) / 7)


def test_a_program_that_refuses_its_inputs_says_so() -> None:
    with pytest.raises(RelayError) as raised:
        imported(script(_refused), (torch.ones(3),))
    assert raised.value.diagnostics[0].code == "R0804" and "refuses its inputs" in str(raised.value)


class Counter(nn.Module):
    """Loops of unknown length write into a buffer, and into views of a tensor that is older than both loops."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("steps", torch.zeros(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        done = torch.zeros(3)
        while bool(done.sum() < x.sum()):
            self.steps.add_(1)
            made = torch.ones(3)
            made.mul_(2)
            done[1:] += made[1:]
            turn = torch.zeros(1)
            while bool(turn.sum() < 2):
                turn = turn + 1
                done[0] += 0.5
        x.mul_(2)
        return done + self.steps.sum()


def test_loops_of_unknown_length_write_into_older_tensors() -> None:
    module = torch.jit.script(Counter())
    program = imported(module, (torch.zeros(2),)).module
    for x in (torch.tensor([3.0, 14]), torch.tensor([-1.0, 0])):
        module.steps.zero_()
        found = values(program, (x.clone(),))
        same(found[:2], (module(x.clone()), module.steps))


class Cells(nn.Module):
    """Cells that are called step by step, and a state that stays."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.gru, self.rnn = nn.LSTMCell(4, 5), nn.GRUCell(5, 5), nn.RNNCell(5, 3)
        self.register_buffer("steps", torch.zeros(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.zeros(x.shape[1], 5)
        c = torch.zeros(x.shape[1], 5)
        for i in range(x.shape[0]):
            h, c = self.lstm(x[i], (h, c))
            h = self.gru(h, c)
        self.steps += 1.5
        return self.rnn(h)


def test_cells_and_new_values_of_buffers() -> None:
    torch.manual_seed(2)
    module, x = torch.jit.script(Cells().eval()), torch.randn(3, 2, 4)
    found = values(imported(module, (x,)).module, (x,))
    with torch.no_grad():
        same(found, (module(x), module.steps))


def test_several_tensors_in_tuples_and_defaults() -> None:
    class Pairs(nn.Module):
        def forward(self, x: torch.Tensor, hx: tuple[torch.Tensor, torch.Tensor], scale: float = 2.0, y: torch.Tensor | None = None):
            return {"a": x + hx[0], "b": hx[1] * scale if y is None else y}

    module = torch.jit.script(Pairs())
    mod, _ = relay.frontend.from_pytorch(module, [("x", (3,)), ("hx", [(3,), (2,)])])
    found = Evaluator(mod).call("main", (np.ones(3, "f4"), np.ones(3, "f4"), np.ones(2, "f4")))
    assert [np.asarray(f).tolist() for f in found] == [[2, 2, 2], [2, 2]]
    assert [p.name_hint for p in mod["main"].params] == ["x", "hx.0", "hx.1"]


# ---- a real network


@pytest.mark.parametrize("batch", [1, 3])
def test_silero_computes_what_torch_computes(batch: int) -> None:
    data = real_networks.data("silero_vad.jit")
    module = torch.jit.load(io.BytesIO(data))
    module.reset_states()
    first, second = 0.1 * torch.randn(2, batch, 512, generator=torch.Generator().manual_seed(6))
    mod = import_pytorch(data, Options({"x": (batch, 512)}, values={"sr": 16000}), "silero.jit").module
    found = values(mod, (first,))
    with torch.no_grad():
        same(found, (module(first, 16000), module._context, module._state))
    shapes = {"x": (batch, 512), "_context": (batch, 64), "_state": (2, batch, 128)}
    known = {"sr": 16000, "_last_sr": 16000, "_last_batch_size": batch}
    mod = import_pytorch(data, Options(shapes, values=known), "silero.jit").module
    again = Evaluator(mod).call("main", (second.numpy(), *found[1:]))
    with torch.no_grad():
        same([np.asarray(a) for a in again], (module(second, 16000), module._context, module._state))


def test_the_table_of_arguments_agrees_with_torch() -> None:
    if not torch.__version__.startswith("2.13."):
        pytest.skip("the table is that of torch 2.13")
    spec = importlib.util.spec_from_file_location("torch_schemas", ROOT / "scripts" / "torch_schemas.py")
    assert spec is not None and spec.loader is not None
    written = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(written)
    assert written.FILE.read_text().splitlines() == written.lines(), "run scripts/torch_schemas.py"


def test_a_number_that_the_code_needs_is_named() -> None:
    data = real_networks.data("silero_vad.jit")
    with pytest.raises(RelayError) as raised:
        import_pytorch(data, Options({"x": (1, 512)}), "silero.jit")
    assert raised.value.diagnostics[0].code == "R0801" and "--value sr=1" in str(raised.value)


def test_the_command_gives_values(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(real_networks.path("silero_vad.jit"))
    ran = command(capsys, "import", path, "--shape", "x=1x512", "--value", "sr=16000")
    assert ran.status == 0 and "def @main(%x: Tensor[(1, 512), float32]" in ran.out
    assert command(capsys, "import", path, "--shape", "x=1x512", "--value", "sr=a").status == 2


def test_input_infos_in_every_form() -> None:
    x = torch.randn(2, 3)
    module = traced(nn.Linear(3, 4).eval(), (x,))
    typed = [[("x", ((2, 3), dtype))] for dtype in ("float32", np.float32)]
    for infos in ([("x", x)], [("x", [2, 3])], [("x", x.shape)], {"x": (2, 3)}, *typed):
        mod, _ = relay.frontend.from_pytorch(module, infos)
        assert str(mod["main"].params[0].checked_type) == "Tensor[(2, 3), float32]"
    for wrong in ([(2, 3)], ["x"], "x", [("x", 5)], [("x", "2x3")]):
        with pytest.raises(RelayError, match="no pair of a name and a shape"):
            relay.frontend.from_pytorch(module, wrong)


def test_a_plain_module_holds_no_program() -> None:
    with pytest.raises(RelayError, match=r"plain module.*\n.*torch.export.export"):
        relay.frontend.from_pytorch(nn.Linear(3, 4), [("x", (2, 3))])
    with pytest.raises(RelayError, match="is no model of PyTorch"):
        relay.frontend.from_pytorch(7, [("x", (2, 3))])
