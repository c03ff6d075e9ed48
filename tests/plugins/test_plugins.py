"""What installed packages add, through the command line; packages that are broken; names of the language's own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import relaylang as relay
from relaylang.backends.registry import parse_target
from relaylang.diagnostics import RelayError
from relaylang.ops import OPS
from relaylang.ops.extensions import Extension, find, names
from relaylang.ops.record import Op, OpPattern, attrs_class, tensor
from relaylang.partition import get_pattern_table, partition
from relaylang.patterns import parse_pattern
from relaylang.plugins.entrypoints import installed_names
from relaylang.repl.commands import _doc
from relaylang.repl.completer import suggestions
from relaylang.repl.session import Session
from tests.cli.command import relay as call_relay
from tests.docs.blocks import blocks
from tests.plugins.packages import install, undone
from tests.shared import PATIENCE, ROOT

PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
NET = "def @main(%x: Tensor[(2, 3), float32]) { nn.relu(my.scale(%x, factor=2f)) }"


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    with undone():
        yield


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder that packages are installed into."""
    sys.path.insert(0, str(tmp_path))
    return tmp_path


def _offered(line: str) -> set[tuple[str, str]]:
    """What the session offers at the end of a line."""
    return {(s.text, s.says) for s in suggestions(line, Session())}


@attrs_class("my.ScaleAttrs")
class ScaleAttrs:
    factor: float


def same(types: list, attrs: object, ctx: object) -> object:
    return tensor(types, 0, ctx)  # type: ignore[arg-type]


def scale(name: str = "my.scale") -> Op:
    return Op(name, ("data",), ScaleAttrs, same, OpPattern.ELEMWISE, level=10, doc="data times a factor.")  # type: ignore


def said(code: str, function: object, *args: object, **named: object) -> str:
    with pytest.raises(RelayError) as wrong:
        function(*args, **named)  # type: ignore[operator]
    first = wrong.value.diagnostics[0]
    assert first.code == code, str(wrong.value)
    return first.title


# ---- the whole way


@pytest.mark.sweep
def test_a_package_installed_by_pip(tmp_path: Path) -> None:
    """The one of docs/extending.md, with pip and in processes of their own."""
    source, target = tmp_path / "source", tmp_path / "site"
    source.mkdir()
    for block in blocks(PAGE):
        if block.file in ("pyproject.toml", "npu_package.py", "swish.relay"):
            (source / block.file).write_text(block.text)
    build = '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
    (source / "pyproject.toml").write_text((source / "pyproject.toml").read_text() + build)
    quiet = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(target), str(source)]
    for more in (["--no-build-isolation", "--no-index"], []):  # what builds it may have to come from the index
        made = subprocess.run([*command, *more], capture_output=True, text=True, env=quiet, timeout=PATIENCE)
        if not made.returncode:
            break
    else:
        pytest.skip(f"pip cannot install here: {made.stderr.strip().splitlines()[-1:]}")
    paths = os.pathsep.join([str(target), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": paths, "NO_COLOR": "1"}

    def call(*words: str) -> str:
        ran = subprocess.run(
            [sys.executable, "-m", "relaylang", *words], capture_output=True, text=True, env=env, cwd=source, timeout=PATIENCE
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    assert "Tensor[(1, 3), float32]" in call("run", "swish.relay", "--target", "npu", "--random-params", "0")
    assert "npu_main_0  npu.dense_swish" in call("partition", "swish.relay", "--target", "npu", "--report")
    call("compile", "swish.relay", "--target", "npu -speed=2", "--random-params", "0", "-o", "net.out")
    assert "npu.swish" in (source / "net.out").read_text()


def test_the_start_does_not_look_for_packages(tmp_path: Path) -> None:
    """`relay check` reads no metadata where every name is the language's own, those of its Prelude included."""
    (tmp_path / "net.relay").write_text(
        '#[version = "0.0.5"]\ntype List[A] {\n  Cons(A, List[A]),\n  Nil,\n}\n'
        "def @main(%x: Tensor[(2), float32]) {\n  Cons(nn.relu(%x), Nil)\n}\n"
    )
    code = (
        "import sys\nfrom relaylang.cli import main\n"
        "try:\n    main(['check', 'net.relay'])\nexcept SystemExit as e:\n    print('exit', e.code)\n"
        "print('importlib.metadata' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=PATIENCE)
    assert ran.stdout.strip().endswith("False"), ran.stdout + ran.stderr


# ---- operators


def test_an_operator_of_a_script_is_known_everywhere() -> None:
    relay.op.register(
        scale(),
        kernel=lambda attrs, data: data * np.float32(attrs.factor),
        lower=lambda attrs, args, types: relay.multiply(args[0], relay.const(attrs.factor)),
    )
    mod = relay.transform.InferType()(relay.parse(NET))
    x = np.linspace(-1, 1, 6, dtype="float32").reshape(2, 3)
    wanted = np.maximum(x * 2, 0)
    np.testing.assert_array_equal(relay.evaluate(mod, x), wanted)
    np.testing.assert_allclose(relay.build(mod, target="c").run(x=x), wanted)
    assert "my.scale(%x, factor=2f)" in relay.astext(mod, show_types=False)
    assert relay.op.get("my.scale").doc == "data times a factor."
    assert "my.scale(data, factor)" in _doc(Session(), "my.scale")
    assert ("my.scale", "data times a factor.") in _offered(":doc my.")
    assert str(parse_pattern("my.scale(_, factor=2f)")) == "my.scale(_, factor=2.0)"
    folded = relay.transform.FoldConstant()(relay.parse("def @main() { my.scale(3f, factor=2f) }"))
    assert float(folded["main"].body.data) == 6


def test_wrong_attributes_of_an_added_operator_are_told() -> None:
    relay.op.register(scale())
    assert "wants the attribute `factor`" in said("R0208", relay.parse, NET.replace(", factor=2f", ""))
    mod = relay.parse(NET)
    assert "no kernel for my.scale" in said("R0406", relay.evaluate, mod, np.ones((2, 3), "float32"))
    assert "my.scale" in said("R0633", relay.build, mod, target="c")


@pytest.mark.parametrize(
    "kernel, says",
    [
        (lambda attrs, data: data[0] / 0, "returned float32[3]"),
        (lambda attrs, data: data.astype("float64"), "its kernel returned float64[2, 3]"),
        (lambda attrs, data: data[:1], "its kernel returned float32[1, 3]"),
        (lambda attrs, data: None, "its kernel returned nothing (None), not an array"),
        (lambda attrs, data: attrs.nothing, "its kernel raised AttributeError"),
        (lambda data: data, "its kernel raised TypeError"),
    ],
)
def test_a_kernel_that_is_wrong_is_told_at_the_call(kernel: object, says: str) -> None:
    relay.op.register(scale(), kernel=kernel)
    with pytest.raises(RelayError) as wrong, np.errstate(all="ignore"):
        relay.evaluate(relay.parse(NET), np.ones((2, 3), "float32"))
    first = wrong.value.diagnostics[0]
    assert says in first.title and first.labels[0].span is not None


def test_a_lowering_that_is_wrong_is_told() -> None:
    def build(lower: object) -> object:
        relay.op.register(scale(), lower=lower)
        return relay.build(relay.parse(NET), target="c")

    assert "raised ZeroDivisionError" in said("R0502", build, lambda attrs, args, types: 1 / 0)
    assert "not an expression" in said("R0503", build, lambda attrs, args, types: 1)
    assert "made `Tensor[(3, 2)" in said("R0504", build, lambda attrs, args, types: relay.transpose(args[0]))
    again = relay.ops.extensions.Extension
    assert again is Extension
    endless = build
    assert "does not end" in said("R0502", endless, lambda attrs, args, types: relay.ir.Call(OPS["my.scale"], args, attrs))


def test_what_cannot_be_registered() -> None:
    assert "has the name of the language's own nn.relu" in said("R0219", relay.op.register, scale("nn.relu"))
    assert "which the language cannot write" in said("R0219", relay.op.register, scale("my scale"))
    assert "has kernel=3, which is no function" in said("R0219", relay.op.register, scale(), kernel=3)
    assert "is no operator" in said("R0219", relay.op.register, "my.scale")
    assert "my.scale" not in OPS


def test_an_operator_of_a_package_is_imported_when_it_is_used(site: Path) -> None:
    code = (
        "import tests.plugins.test_plugins as t\n"
        "made = t.Extension(t.scale(), lambda attrs, data: data * attrs.factor)\nbare = t.scale('my.bare')\n"
    )
    install(site, "scale-package", {"ops": {"my.scale": "scale_package:made", "my.bare": "scale_package:bare"}}, code)
    assert {"my.scale", "my.bare"} <= set(installed_names("relaylang.ops")) and "my.scale" in names()
    assert "scale_package" not in sys.modules and ("my.scale", "an operator of an installed package") in _offered(":doc my.")
    assert relay.parse(NET)["main"].body.args[0].op is OPS["my.scale"]
    assert find("my.bare") is not None and find("my.nothing") is None
    assert said("R0202", relay.parse, NET.replace("my.scale", "my.scael")) == "unknown operator `my.scael`"
    with pytest.raises(RelayError) as wrong:
        relay.parse(NET.replace("my.scale", "my.scael"))
    assert "my.scale" in str(wrong.value)


BROKEN = {
    "import nothing_of_this_name\n": "cannot be loaded: ModuleNotFoundError: No module named 'nothing_of_this_name'",
    "import sys\nsys.exit(3)\n": "cannot be loaded: SystemExit: 3",
    "def made(:\n": "cannot be loaded: SyntaxError",
    "made = None\n": "is None",
    "made = 3\n": "is no operator, but a value of type int",
    "import tests.plugins.test_plugins as t\nmade = t.scale('nn.relu')\n": "has the name of the language's own nn.relu",
    "import tests.plugins.test_plugins as t\nmade = t.scale('my.other')\n": "has the name my.other",
    "other = 3\n": "cannot be loaded: AttributeError",
}


@pytest.mark.parametrize("code", BROKEN)
def test_a_broken_operator_is_named_with_its_package(code: str, site: Path) -> None:
    install(site, "bad-package", {"ops": {"my.scale": "bad_package:made"}}, code)
    title = said("R0512", relay.parse, NET)
    assert title.startswith("the operator my.scale of the package bad-package") and BROKEN[code] in title
    relay.parse(NET.replace("my.scale(%x, factor=2f)", "%x"))  # others are not touched


def test_two_packages_with_one_operator(site: Path) -> None:
    for name in ("one-package", "two-package"):
        install(site, name, {"ops": {"my.scale": f"{name.replace('-', '_')}:made"}})
    title = said("R0512", relay.parse, NET)
    assert "is added by several packages: one-package" in title and "two-package" in title


# ---- pattern tables, passes


def test_tables_and_passes_of_packages(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A broken package stops only those that ask for what it adds."""
    code = "def table():\n    return rows\nnumber = 3\n"
    groups = {
        "pattern_tables": {"npu": "bad_package:table", "tpu": "bad_package:number", "gpu": "no_module:x"},
        "passes": {"Three": "bad_package:number", "Gone": "no_module:x"},
    }
    install(site, "bad-package", groups, code)
    net = site / "net.relay"
    net.write_text('#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32]) {\n  nn.relu(%x)\n}\n')
    assert "the pattern table of npu raised NameError" in said("R0502", get_pattern_table, "npu")
    assert "is no function, but a value of type int" in said("R0512", get_pattern_table, "tpu")
    assert "package bad-package cannot be loaded" in said("R0512", get_pattern_table, "gpu")
    assert len(get_pattern_table("dnnl")) == 95
    ran = call_relay(capsys, "opt", str(net), "--passes", "InferType")
    assert ran.status == 0
    for name in ("Three", "Gone"):
        ran = call_relay(capsys, "opt", str(net), "--passes", name)
        assert ran.status == 2 and "R0512" in ran.err and "bad-package" in ran.err
    ran = call_relay(capsys, "opt", "--list")
    assert ran.status == 0 and re.search(r"Gone\n    the pass Gone of the package bad-package cannot be loaded", ran.out)
    ran = call_relay(capsys, "partition", str(net), "--target", "npq")
    assert ran.status == 2 and "did you mean npu?" in ran.err


def test_register_op_attr() -> None:
    @relay.register_op_attr("nn.relu", "target.toy")
    def takes(call: relay.Call) -> bool:
        return True

    mod = partition(relay.parse("def @main(%x: Tensor[(2), float32]) { nn.relu(%x) }"), "toy", table=[])
    assert any("Compiler" in f.attrs for f in mod.functions.values())
    assert "does not use the attribute TShape" in said("R0219", relay.register_op_attr, "nn.relu", "TShape")
    assert "there is no operator nn.rellu" in said("R0219", relay.register_op_attr, "nn.rellu", "target.toy")


def test_a_check_of_an_operator_that_raises_is_told() -> None:
    relay.register_op_attr("nn.relu", "target.toy", lambda call: call.nothing)
    mod = relay.parse("def @main(%x: Tensor[(2), float32]) { nn.relu(%x) }")
    with pytest.raises(RelayError) as wrong:
        relay.transform.AnnotateTarget("toy")(mod)
    first = wrong.value.diagnostics[0]
    assert first.code == "R0502" and first.title.startswith("the check target.toy of nn.relu raised AttributeError")


# ---- backends

BACKEND = """
import relaylang as relay
doc = "a simulator"
options = {"speed": int}
class Program:
    def __init__(self, mod, params, entry):
        self.mod, self.params, self.entry = mod, params, entry
        self.input_names = [p.name_hint for p in mod[entry].params if p.name_hint not in params]
    def run(self, **inputs):
        if FAILS == "run":
            raise ValueError("no device")
        return relay.evaluate(self.mod, entry=self.entry, **self.params, **inputs)
    def save(self, path):
        open(path, "w").write(relay.astext(self.mod))
def compile_for(mod, target, fallback, params, entry):
    if FAILS == "compile":
        raise KeyError("layer")
    return None if FAILS == "none" else Program(mod, params, entry)
FAILS = ""
"""


@pytest.fixture
def net(site: Path) -> Path:
    path = site / "net.relay"
    path.write_text('#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32]) {\n  nn.relu(%x)\n}\n')
    return path


def test_a_backend_of_a_package(site: Path, net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(site, "sim-package", {"backends": {"sim": "sim_package"}}, BACKEND)
    (target,) = parse_target("sim -speed=3")
    assert target.get("speed") == 3
    assert "has no option -sped" in said("R0602", parse_target, "sim -sped=3")
    assert "wants a whole number" in said("R0602", parse_target, "sim -speed=fast")
    ran = call_relay(capsys, "run", str(net), "--target", "sim", "--input", "x=[1, -1]")
    assert ran.status == 0 and ran.out.startswith("[1. 0.]")
    out = site / "net.out"
    ran = call_relay(capsys, "compile", str(net), "--target", "sim", "-o", str(out))
    assert ran.status == 0 and "nn.relu" in out.read_text() and "inputs: %x" in ran.out


def test_a_backend_of_a_package_has_the_rest_compiled(site: Path, net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rest = "def compile_for(mod, target, fallback, params, entry, compile_rest):\n    return compile_rest(mod)\n"
    install(site, "sim-package", {"backends": {"sim": "sim_package"}}, rest)
    ran = call_relay(capsys, "run", str(net), "--target", "sim, c", "--input", "x=[1, -1]")
    assert ran.status == 0 and ran.out.startswith("[1. 0.]")


@pytest.mark.parametrize(
    "fails, says",
    [
        ("compile", "the backend sim in compile_for raised KeyError: 'layer'"),
        ("none", "the backend sim made nothing (None), which has no run"),
        ("run", "the backend sim in run raised ValueError: no device"),
    ],
)
def test_a_backend_that_fails_is_named(fails: str, says: str, site: Path, net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(site, "sim-package", {"backends": {"sim": "sim_package"}}, BACKEND.replace('FAILS = ""', f'FAILS = "{fails}"'))
    ran = call_relay(capsys, "run", str(net), "--target", "sim", "--input", "x=[1, -1]")
    assert ran.status == 1 and "error[R0604]" in ran.err and says in ran.err


@pytest.mark.parametrize(
    "code, says",
    [
        ("import nothing_of_this_name\n", "cannot be loaded: ModuleNotFoundError"),
        ("doc = 3\n", "has no function compile_for"),
        ("options = [1]\ndef compile_for(*_): pass\n", "has options that are no names"),
    ],
)
def test_a_broken_backend_is_named_with_its_package(
    code: str, says: str, site: Path, net: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(site, "sim-package", {"backends": {"sim": "sim_package"}}, code)
    ran = call_relay(capsys, "compile", str(net), "--target", "sim", "-o", str(site / "x"))
    assert ran.status == 2 and "the backend sim of the package sim-package" in ran.err and says in ran.err
    ran = call_relay(capsys, "compile", str(net), "--target", "simm", "-o", str(site / "x"))
    assert "did you mean sim?" in ran.err and "sim: from the package sim-package" in ran.err


# ---- what else a script may get wrong, and where else names are known

RELATIONS = {
    "its type relation raised IndexError": lambda types, attrs, ctx: types[5],
    "its type relation raised TypeError": lambda types: types[0],
    "its type relation returned a value of type int, not a type": lambda types, attrs, ctx: 3,
}


@pytest.mark.parametrize("says", RELATIONS)
def test_a_type_relation_that_is_wrong_is_told_at_the_call(says: str) -> None:
    relay.op.register(Op("my.scale", ("data",), ScaleAttrs, RELATIONS[says]))  # type: ignore[arg-type]
    with pytest.raises(RelayError) as wrong:
        relay.transform.InferType()(relay.parse(NET))
    first = wrong.value.diagnostics[0]
    assert first.code == "R0301" and says in first.title and first.labels and "a script or a package" in first.notes[0]


def test_wrong_records_are_not_registered() -> None:
    class Plain:
        factor = 1.0

    made = Op("my.scale", ("data",), Plain, same)  # type: ignore[arg-type]
    assert "not made by attrs_class" in said("R0219", relay.op.register, made)
    assert "which is no function" in said("R0219", relay.op.register, Op("my.scale", ("data",), None, 3))  # type: ignore


def test_a_loaded_file_may_register_what_the_program_uses(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Operators, tables and what a target takes, without a pass."""
    (site / "npu.py").write_text(
        "import relaylang as relay\nimport tests.plugins.test_plugins as t\n"
        "from relaylang.partition import register_pattern_table\n"
        "relay.op.register(t.scale())\nrelay.register_op_attr('my.scale', 'target.npu', lambda call: True)\n"
        "register_pattern_table('npu', lambda: [])\n"
    )
    (site / "exits.py").write_text("import sys\nsys.exit(4)\n")
    (site / "net.relay").write_text('#[version = "0.0.5"]\n' + NET + "\n")
    steps = 'MergeComposite("npu"),AnnotateTarget("npu"),PartitionGraph'
    ran = call_relay(capsys, "opt", site / "net.relay", "--load", site / "npu.py", "--passes", steps)
    assert ran.status == 0 and "tvmgen_default_npu_main_0" in ran.out, ran.err
    ran = call_relay(capsys, "opt", site / "net.relay", "--load", site / "exits.py", "--passes", "InferType")
    assert ran.status == 1 and "exits.py raised SystemExit: 4" in ran.err and "exits.py:2:1" in ran.err
    ran = call_relay(capsys, "opt", site / "net.relay", "--passes", 'MergeComposite("dnl")')
    assert ran.status == 2 and "did you mean dnnl?" in ran.err and "<passes>:1:1" in ran.err


def test_doctor_shows_what_packages_add(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = "import tests.plugins.test_plugins as t\nmade = t.scale()\n"
    install(site, "one-package", {"ops": {"my.scale": "one_package:made", "my.gone": "no_module:made"}}, code)
    ran = call_relay(capsys, "doctor", "--quick")
    assert re.search(r"my\.scale .*an operator of one-package", ran.out), ran.out
    assert "the operator my.gone of the package one-package cannot be loaded" in ran.out


@pytest.mark.parametrize("damage", [b"[relaylang.ops\nmy.scale\n", b"\xff\xfe\x00", b"[relaylang.ops]\nmy.gone = \n= 3\n"])
def test_damaged_metadata_of_one_package_leaves_the_others(damage: bytes, site: Path) -> None:
    code = "import tests.plugins.test_plugins as t\nmade = t.scale()\n"
    install(site, "good-package", {"ops": {"my.scale": "good_package:made"}}, code)
    bad = site / "bad_package-1.0.dist-info"
    bad.mkdir()
    (bad / "METADATA").write_text("Metadata-Version: 2.1\nName: bad-package\nVersion: 1.0\n")
    (bad / "entry_points.txt").write_bytes(damage)
    assert relay.parse(NET)["main"].body.args[0].op is OPS["my.scale"]
    assert said("R0202", relay.parse, NET.replace("my.scale", "my.nothing")) == "unknown operator `my.nothing`"
