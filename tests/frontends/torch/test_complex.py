"""Complex numbers and Fourier transforms: pairs of real tensors that compute what torch computes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from relaylang.diagnostics import RelayError  # noqa: E402
from relaylang.frontends.options import Options  # noqa: E402
from relaylang.frontends.torch import import_pytorch  # noqa: E402
from tests.frontends.torch.cases import Call, flat, pt2, real  # noqa: E402
from tests.frontends.torch.test_networks import same, values  # noqa: E402
from tests.frontends.torch.test_torchscript import imported, saved, traced  # noqa: E402
from tests.shared import check_each, few  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
X = real(2, 50)
WINDOW, SHORT = torch.hann_window(16), torch.hann_window(12)
PAIR = torch.view_as_complex(real(3, 6, 5, 2))
SPECTRUM = torch.stft(X, 16, 4, 16, WINDOW, return_complex=True)
WHOLE = torch.stft(torch.complex(X, X * 2), 16, 4, 16, WINDOW, return_complex=True, onesided=False)
#: Functions of one tensor, which may be complex.
STFT: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "parts": (lambda x: torch.view_as_real(torch.stft(x, 16, 4, 12, SHORT, return_complex=True)), X),
    "size": (lambda x: torch.stft(x, 16, 4, 16, WINDOW, center=False, normalized=True, onesided=False, return_complex=True).abs(), X),
    "one_signal": (lambda x: torch.stft(x[0], 15, pad_mode="constant", return_complex=True), X),
    "circular": (lambda x: torch.stft(x, 15, pad_mode="circular", return_complex=True), X),
    "complex_signal": (lambda x: torch.stft(x, 16, 5, window=WINDOW, return_complex=True), torch.complex(X, X.flip(1))),
    "back": (lambda s: torch.istft(s, 16, 4, 16, WINDOW), SPECTRUM),
    "back_short": (lambda s: torch.istft(s, 16, 4, 16, WINDOW, normalized=True, length=47), SPECTRUM),
    "back_long": (lambda s: torch.istft(s[0], 16, 4, 16, WINDOW, length=57), SPECTRUM),
    "back_whole": (lambda s: torch.istft(s, 16, 4, 16, WINDOW, onesided=False), WHOLE),
    "back_complex": (lambda s: torch.istft(s, 16, 4, 16, WINDOW, onesided=False, return_complex=True, length=47), WHOLE),
    "back_without_centre": (lambda s: torch.istft(s, 16, 4, 16, torch.ones(16), center=False), SPECTRUM),
}
NORMS = {
    f"{name}_{norm}": (partial(getattr(torch.fft, name), norm=norm), PAIR.real if "rfft" in name[:4] or "ih" in name else PAIR)
    for name in "fft ifft fft2 ifft2 fftn ifftn rfft rfft2 rfftn ihfft irfft irfft2 irfftn hfft".split()
    for norm in ("backward", "ortho", "forward")
}
TRANSFORMS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "odd": (lambda x: torch.fft.irfft(x, 9, dim=1), PAIR),
    "sizes": (lambda x: torch.fft.rfftn(x, (4, 9), dim=(2, 0)), PAIR.real),
    "cut": (lambda x: torch.fft.fft(x, 4, dim=0), PAIR),
    "shifts": (lambda x: (torch.fft.fftshift(x), torch.fft.ifftshift(x, dim=1)), PAIR),
    "frequencies": (lambda x: (torch.fft.fftfreq(7) + x[0, 0, 0], torch.fft.rfftfreq(6, 0.5)), PAIR.real),
}
ARITHMETIC: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "products": (lambda x: (x * x.roll(1, 0), x * x.real, x * 1j, x.conj() * x, x @ x.transpose(1, 2)), PAIR),
    "quotients": (lambda x: (x / x.roll(1, 0), x / 3, x.reciprocal()), PAIR),
    "sums": (lambda x: (x + 2 * x.roll(1, 1), 1 - x, torch.sub(x, x.flip(0), alpha=2), x.sum(1), x.mean()), PAIR),
    "functions": (lambda x: (x.abs(), x.angle(), x.exp(), x**2, x.sgn(), x == x.conj(), x.isfinite()), PAIR),
    "moves": (lambda x: (torch.cat([x, x], 1)[:, 1:].permute(1, 0, 2).reshape(-1, 3), x[0].unsqueeze(1), x.split(2, 1)[1]), PAIR),
    "mixed": (lambda x: (torch.stack([x, x.real]), torch.where(x.real > 0, x, 0), x.to(torch.complex128)), PAIR),
    "from_real": (lambda x: (x * 1j, x.to(torch.complex64), torch.polar(x.abs(), x), torch.complex(x, x).imag), PAIR.real),
    "written": (lambda x: x.clone().mul_(2j).add_(1), PAIR),
}


def exported(function: Callable[[Any], Any], x: Any, decomposed: bool = False) -> None:
    """Complex inputs and results have their parts on a last axis."""
    found = values(import_pytorch(pt2(Call(function), (x,), decomposed)).module, (parts(x),))
    same(found, [parts(t) for t in flat(function(x.clone()))])


def scripted(function: Callable[[Any], Any], x: Any) -> None:
    given = parts(x)
    model = Call((lambda pair: function(torch.view_as_complex(pair))) if x.is_complex() else function)
    found = values(imported(traced(model, (given,)), (given,)).module, (given,))
    same(found, [parts(t) for t in flat(function(x.clone()))])


def parts(x: Any) -> Any:
    return (torch.view_as_real(x.resolve_conj()) if x.is_complex() else x).resolve_neg()


@pytest.mark.parametrize("cases", [STFT, TRANSFORMS, ARITHMETIC], ids=["stft", "transforms", "arithmetic"])
def test_traced_programs(cases: dict[str, Any]) -> None:
    check_each(lambda case: scripted(*case), cases.values(), cases)


@pytest.mark.parametrize("names", few(("parts circular back_short", " ".join(STFT)), "parts circular back_short"))
def test_exported_windows(names: str) -> None:
    check_each(lambda name: exported(*STFT[name]), names.split())


@pytest.mark.parametrize("cases", [TRANSFORMS, ARITHMETIC], ids=["transforms", "arithmetic"])
def test_exported_programs(cases: dict[str, Any]) -> None:
    check_each(lambda case: exported(*case), cases.values(), cases)


@pytest.mark.sweep
@pytest.mark.parametrize("door", [exported, scripted], ids=["exported", "scripted"])
def test_norms(door: Any) -> None:
    check_each(lambda case: door(*case), NORMS.values(), NORMS)


@pytest.mark.sweep
def test_decomposed_programs() -> None:
    cases = {name: case for name, case in STFT.items() if case[1] is X}
    check_each(lambda case: exported(*case, decomposed=True), cases.values(), cases)


def test_a_complex_input_of_a_traced_program() -> None:
    """The caller tells its element type and its shape without the parts, or its value."""
    script = traced(Call(lambda x: x * x.abs()), (PAIR,))
    wanted = [parts(PAIR * PAIR.abs())]
    same(values(imported(script, (PAIR,)).module, (parts(PAIR),)), wanted)
    fixed = import_pytorch(saved(script), Options(values={"x": PAIR.numpy()}), "net.pt").module
    same(values(fixed, ()), wanted)


def test_an_operator_without_a_form_for_complex_numbers_is_refused() -> None:
    with pytest.raises(RelayError) as refused:
        import_pytorch(pt2(Call(lambda x: x.tanh()), (PAIR,)))
    diagnostic = refused.value.diagnostics[0]
    assert diagnostic.code == "R0801"
    assert "aten.tanh.default  first in tanh: it computes with complex numbers" in diagnostic.notes[0]
