"""Steps of decoders with a cache of keys and values, beside onnxruntime on the step's export: a table of `benchmarks/vm.py`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import paired, peer_session

STEPS = 64


@dataclass(frozen=True)
class Decoder:
    """A decoder with heads of 64 and rotary positions; `own` heads of keys and values serve all queries."""

    layers: int
    width: int
    own: int
    positions: int
    words: int = 4096

    def network(self) -> tuple[str, dict[str, np.ndarray], dict[str, int]]:
        """The text of a step, its weights, and the states with the numbers of their results."""
        rng = np.random.default_rng(0)
        width, own, size, inner = self.width, self.own, 64, 4 * self.width
        heads = width // size
        weights = {"frequencies": (10000.0 ** (-np.arange(size // 2) / (size // 2))).astype("float32")}
        states = [f"{part}{n}" for n in range(self.layers) for part in ("keys", "values")]

        def weight(name: str, *shape: int) -> str:
            weights[name] = (rng.standard_normal(shape) / np.sqrt(shape[-1])).astype("float32")
            return f"%{name}"

        def norm(x: str, gain: str) -> str:
            root = f"rsqrt(add(mean(multiply({x}, {x}), axis=[-1], keepdims=True), 1e-05f))"
            return f"multiply(multiply({x}, {root}), {weight(gain, width)})"

        lines = [
            '%angle = multiply(cast(%position, dtype="float32"), %frequencies)',
            "%cos = cos(%angle)",
            "%sin = sin(%angle)",
            "%row = expand_dims(%position, axis=0)",
            '%zero = zeros(shape=[1], dtype="int32")',
            "%begin = concatenate((%zero, %row, %zero))",
            f"%end = concatenate((expand_dims({own}, axis=0), add(%row, 1), expand_dims({size}, axis=0)))",
            '%steps = ones(shape=[3], dtype="int32")',
            f'%past = less_equal(arange(0, {self.positions}, 1, dtype="int32"), %position)',
            f"%x0 = expand_dims(take({weight('embedding', self.words, width)}, %token, axis=0), axis=0)",
        ]
        for n in range(self.layers):
            rows = heads + 2 * own
            project = f"nn.dense(%a{n}, {weight(f'project{n}', rows * size, width)})"
            low, high = (f"%h{n}.{half}" for half in (0, 1))
            lines += [
                f"%a{n} = {norm(f'%x{n}', f'gain_a{n}')}",
                f"%p{n} = split(reshape({project}, newshape=[{rows}, 1, {size}]), indices_or_sections=[{heads + own}], axis=0)",
                f"%h{n} = split(%p{n}.0, indices_or_sections=2, axis=-1)",
                f"%l{n} = subtract(multiply({low}, %cos), multiply({high}, %sin))",
                f"%t{n} = concatenate((%l{n}, add(multiply({high}, %cos), multiply({low}, %sin))), axis=-1)",
                f"%q{n} = split(%t{n}, indices_or_sections=[{heads}], axis=0)",
                f"%k{n} = strided_set(%keys{n}, %q{n}.1, %begin, %end, %steps)",
                f"%v{n} = strided_set(%values{n}, %p{n}.1, %begin, %end, %steps)",
                f"%r{n} = reshape(%q{n}.0, newshape=[{own}, {heads // own}, {size}])",
                f"%s{n} = multiply(nn.batch_matmul(%r{n}, %k{n}, transpose_b=True), {size**-0.5}f)",
                f"%w{n} = nn.softmax(where(%past, %s{n}, -1e+09f))",
                f"%o{n} = reshape(nn.batch_matmul(%w{n}, %v{n}, transpose_b=False), newshape=[1, {width}])",
                f"%y{n} = add(%x{n}, nn.dense(%o{n}, {weight(f'join{n}', width, width)}))",
                f"%f{n} = {norm(f'%y{n}', f'gain_f{n}')}",
                f"%u{n} = nn.relu(nn.dense(%f{n}, {weight(f'up{n}', inner, width)}))",
                f"%x{n + 1} = add(%y{n}, nn.dense(%u{n}, {weight(f'down{n}', width, inner)}))",
            ]
        scores = f"nn.dense({norm(f'%x{self.layers}', 'gain')}, {weight('words', self.words, width)})"
        results = ", ".join(f"%{part}{n}" for n in range(self.layers) for part in "kv")
        cache = f"Tensor[({own}, {self.positions}, {size}), float32]"
        params = ["%token: int32", "%position: int32", *(f"%{state}: {cache}" for state in states)]
        params += [f"%{name}: Tensor[({', '.join(map(str, w.shape))}{',' * (w.ndim == 1)}), float32]" for name, w in weights.items()]
        body = "".join(f"  let {line};\n" for line in lines)
        text = f"def @main({', '.join(params)}) {{\n{body}  ({scores}, {results})\n}}"
        return text, weights, {state: 1 + n for n, state in enumerate(states)}


#: The decoders of the table, beside that of `examples/decoder`.
DECODERS = (Decoder(4, 256, 1, 256), Decoder(8, 512, 2, 512))


def bound_step(session: Any, states: int) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """A decoder's step in onnxruntime. Two sets of buffers hold the states in turns, so that no step makes arrays for them."""
    from onnxruntime import OrtValue

    inputs, outputs = session.get_inputs(), session.get_outputs()
    free, held = inputs[: len(inputs) - states], inputs[len(inputs) - states :]
    values = [OrtValue.ortvalue_from_numpy(np.zeros(i.shape, np.int32)) for i in free]
    scores = OrtValue.ortvalue_from_numpy(np.zeros(outputs[0].shape, np.float32))
    sets = [[OrtValue.ortvalue_from_numpy(np.zeros(i.shape, np.float32)) for i in held] for _ in range(2)]
    bindings = []
    for before, after in (sets, reversed(sets)):
        binding = session.io_binding()
        for value, info in zip([*values, *before], inputs):
            binding.bind_ortvalue_input(info.name, value)
        for value, info in zip([scores, *after], outputs):
            binding.bind_ortvalue_output(info.name, value)
        bindings.append(binding)

    def step(token: np.ndarray, position: np.ndarray) -> np.ndarray:
        for value, array in zip(values, (token, position)):
            value.update_inplace(array)
        session.run_with_iobinding(bindings[position % 2])
        return scores.numpy().copy()

    return step


def _quantised_by_peer(network: Any) -> Any:
    """An ONNX model whose weights onnxruntime's own quantiser made int8."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with tempfile.TemporaryDirectory() as folder:
        before, after = (str(Path(folder) / name) for name in ("float.onnx", "int8.onnx"))
        onnx.save(network, before)
        quantize_dynamic(before, after, weight_type=QuantType.QInt8)
        return onnx.load(after)


def _row(name: str, form: str, session: Any, network: Any, states: int, tolerance: float) -> str:
    """The row of a session, beside an ONNX model of its step."""
    tokens = [np.array(t, np.int32) for t in np.random.default_rng(0).integers(32, 127, STEPS)]
    places = [np.array(p, np.int32) for p in range(STEPS)]
    peer_step = bound_step(peer_session(network), states)

    def ours() -> list[np.ndarray]:
        return [session.run(token=token, position=place) for token, place in zip(tokens, places)]

    def theirs() -> list[np.ndarray]:
        return [peer_step(token, place) for token, place in zip(tokens, places)]

    want = np.array(theirs())
    np.testing.assert_allclose(ours(), want, rtol=1e-3, atol=tolerance * np.abs(want).max())
    ratio, own, other = paired(ours, theirs)
    return f"| {name} | {form} | {STEPS} | {own / STEPS:.4f} | {other / STEPS:.4f} | {ratio:.2f} |"


def decoders() -> list[str]:
    """The rows of decoders: a step of text with its cache, beside onnxruntime on the step's export. Both have one thread.

    Beside int8 stands onnxruntime's own quantisation of the export, which is faster than the export of ours.
    """
    import relaylang as relay
    from examples.decoder import generate
    from relaylang.backends import compile_module
    from relaylang.export.onnx import export_onnx
    from relaylang.ir.binding import bind_params
    from relaylang.quantize import quantize_dynamic, quantize_weights

    def bound(text: str, weights: dict[str, np.ndarray]) -> Any:
        return relay.transform.FoldConstant()(relay.transform.InferType()(bind_params(relay.parse(text), weights)))

    lines = ["| decoder with cache | weights | steps | session, a step (ms) | onnxruntime, a step (ms) | ratio |"]
    lines.append("|---|---|---|---|---|---|")
    example = bound((generate.HERE / "decoder.relay").read_text(), generate.weights())
    session = generate.session("c -num-threads=1")
    lines.append(_row("2 layers of 96, 128 positions", "float32", session, export_onnx(example), len(generate.STATE), 1e-4))
    for decoder in DECODERS:
        name = f"{decoder.layers} layers of {decoder.width}, {decoder.positions} positions"
        text, weights, states = decoder.network()
        mod = bound(text, weights)
        exported = export_onnx(mod)
        small = quantize_weights(mod)
        for form, own, network, tolerance in (
            ("float32", mod, exported, 1e-4),
            ("int8", quantize_dynamic(mod), _quantised_by_peer(exported), 0.1),
            ("4 bits", small, export_onnx(small), 1e-4),
        ):
            session = compile_module(own, "c -num-threads=1").session(states)
            lines.append(_row(name, form, session, network, len(states), tolerance))
    return lines
