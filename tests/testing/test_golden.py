"""Golden files in pytest: what they forgive, what they show, and how they are written."""

from __future__ import annotations

from pathlib import Path

import pytest

# what the inner test runs use is loaded once, out here
from relaylang.testing.golden import difference
from tests.shared import few

pytest_plugins = ["pytester"]

HEADER = '#[version = "0.0.5"]\n'
PROGRAM = """
import numpy as np
import relaylang as relay

TEXT = '''
def @main(%{x}: Tensor[(2, 3), float32]) {{
  let %{y} = nn.relu(%{x});
  {body}
}}
'''

def program(x="x", y="y", body="add(%y, %x)"):
    mod = relay.parse(TEXT.format(x=x, y=y, body=body))
    return relay.transform.InferType()(mod)

def constant(value):
    x = relay.var("x", shape=(2, 3), dtype="float32")
    c = relay.const(np.full((2, 3), value, "float32"))
    call = relay.Call(relay.ops.get("add"), [x, c])
    return relay.transform.InferType()(relay.IRModule.from_expr(relay.Function([x], call)))
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(programs=PROGRAM)
    pytester.syspathinsert()
    return pytester


def run(project: pytest.Pytester, test: str, *arguments: str) -> pytest.RunResult:
    project.makepyfile(test_it="from programs import constant, program\n" + test)
    return project.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:hypothesispytest", *arguments)


CHECK = "def test_a(golden):\n    golden.check({})\n"


def test_a_missing_file_fails_and_update_writes_it(project: pytest.Pytester) -> None:
    file = project.path / "tests/golden/test_it.test_a.relay"
    failed = run(project, CHECK.format("program()"))
    failed.assert_outcomes(failed=1)
    failed.stdout.fnmatch_lines(["*there is no golden file*test_it.test_a.relay", "*pytest --golden-update*"])
    assert not file.exists()
    written = run(project, CHECK.format("program()"), "--golden-update")
    written.assert_outcomes(passed=1)
    written.stdout.fnmatch_lines(["*golden files*", f"written: {file}"])
    assert "let %y /* ty=Tensor[(2, 3), float32] */ = nn.relu(%x)" in file.read_text()
    run(project, CHECK.format("program()")).assert_outcomes(passed=1)


@pytest.mark.sweep
def test_names_do_not_count_unless_asked(project: pytest.Pytester) -> None:
    run(project, CHECK.format("program()"), "--golden-update")
    renamed = 'program("in", "out", "add(%out, %in)"){}'
    run(project, CHECK.format(renamed.format(""))).assert_outcomes(passed=1)
    failed = run(project, CHECK.format(renamed.format(", names=True")))
    failed.assert_outcomes(failed=1)
    failed.stdout.fnmatch_lines(["*- *let %y*", "*+ *let %out*"])


def test_names_that_mean_another_thing_count(project: pytest.Pytester) -> None:
    run(project, CHECK.format("program()"), "--golden-update")
    failed = run(project, CHECK.format('program(body="add(%x, %y)")'))
    failed.assert_outcomes(failed=1)
    failed.stdout.fnmatch_lines(["*- *add(%y, %x)*", "*+ *add(%x, %y)*"])
    failed.stdout.no_fnmatch_line("*[+-]   let *")


@pytest.mark.sweep
def test_values_of_constants_do_not_count_unless_asked(project: pytest.Pytester) -> None:
    run(project, CHECK.format("constant(1)"), "--golden-update")
    file = project.path / "tests/golden/test_it.test_a.relay"
    assert "#[metadata]" not in file.read_text()
    run(project, CHECK.format("constant(2)")).assert_outcomes(passed=1)
    run(project, CHECK.format("constant(1), metadata=True"), "--golden-update")
    assert "#[metadata]" in file.read_text()
    run(project, CHECK.format("constant(1), metadata=True")).assert_outcomes(passed=1)
    run(project, CHECK.format("constant(2), metadata=True")).assert_outcomes(failed=1)


def test_layout_and_comments_of_the_file_do_not_count(project: pytest.Pytester) -> None:
    run(project, CHECK.format("program()"), "--golden-update")
    file = project.path / "tests/golden/test_it.test_a.relay"
    by_hand = "def @main(%a: Tensor[(2, 3), float32]) {\n  // by hand\n  let %b = nn.relu(%a);\n  add(%b, %a) }\n"
    file.write_text(by_hand)
    run(project, CHECK.format("program()")).assert_outcomes(passed=1)
    run(project, CHECK.format("program()"), "--golden-update").assert_outcomes(passed=1)
    assert file.read_text() == by_hand


@pytest.mark.parametrize("broken", few(["def @main(%x {", "\ufeff", "", "nn.rellu(1f)"], "def @main(%x {"))
def test_a_file_edited_into_an_error(project: pytest.Pytester, broken: str) -> None:
    run(project, CHECK.format("program()"), "--golden-update")
    file = project.path / "tests/golden/test_it.test_a.relay"
    file.write_text(broken)
    failed = run(project, CHECK.format("program()"))
    failed.assert_outcomes(failed=1)
    failed.stdout.fnmatch_lines(["*the golden file is not right:", "*error*R0*"])
    failed.stdout.no_fnmatch_line("*Traceback*")
    assert file.read_text() == broken
    run(project, CHECK.format("program()"), "--golden-update").assert_outcomes(passed=1)
    assert "nn.relu(%x)" in file.read_text()


def test_a_file_that_is_no_text(project: pytest.Pytester) -> None:
    file = project.path / "tests/golden/test_it.test_a.relay"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"\xff\xfe\0")
    failed = run(project, CHECK.format("program()"))
    failed.assert_outcomes(failed=1)
    failed.stdout.fnmatch_lines(["*cannot be read*"])


def test_update_removes_nothing_and_leaves_what_is_right(project: pytest.Pytester) -> None:
    folder = project.path / "tests/golden"
    folder.mkdir(parents=True)
    (folder / "other.relay").write_text("not ours")
    run(project, CHECK.format("program()"), "--golden-update")
    before = (folder / "test_it.test_a.relay").stat().st_mtime_ns
    run(project, CHECK.format('program("p", "q", "add(%q, %p)")'), "--golden-update")
    assert (folder / "test_it.test_a.relay").stat().st_mtime_ns == before
    assert (folder / "other.relay").read_text() == "not ours"


def test_names_of_files(project: pytest.Pytester) -> None:
    test = """
import pytest

@pytest.mark.parametrize("n", ["a/b", "ü"])
def test_many(golden, n):
    golden.check(program())
    golden.check(program())
    golden.check(program(), "named")

def test_outside(golden):
    with pytest.raises(ValueError):
        golden.check(program(), "../named")
"""
    run(project, test, "--golden-update").assert_outcomes(passed=3)
    names = sorted(p.name for p in (project.path / "tests/golden").iterdir())
    assert "named.relay" in names and "test_it.test_many_a_b.relay" in names and "test_it.test_many_a_b_.2.relay" in names
    assert len(names) == 5


def test_another_folder_and_an_inserted_line(project: pytest.Pytester) -> None:
    project.makeini("[pytest]\ngolden_dir = pinned\n")
    chain = 'program(body="let %a = nn.relu(%y); let %b = {}; add(%b, %a)")'
    run(project, CHECK.format(chain.format("tanh(%a)")), "--golden-update")
    assert (project.path / "pinned/test_it.test_a.relay").exists()
    longer = 'program(body="let %n = exp(%y); let %a = nn.relu(%n); let %b = tanh(%a); add(%b, %a)")'
    failed = run(project, CHECK.format(longer))
    failed.assert_outcomes(failed=1)
    failed.stdout.fnmatch_lines(["*+ *let %n*exp(%y)*"])


@pytest.mark.sweep
def test_with_xdist(project: pytest.Pytester) -> None:
    project.makepyfile(test_it="from programs import program\n" + CHECK.format("program()"))
    ran = project.runpytest_subprocess("-n", "1", "--golden-update", "-p", "no:cacheprovider")
    ran.assert_outcomes(passed=1)
    ran.stdout.fnmatch_lines(["written: *test_it.test_a.relay"])


def test_a_thousand_lines_are_quick(tmp_path: Path) -> None:
    lines = [f"  let %{i} = add(%{i - 1}, %x);" for i in range(1, 5000)]
    assert difference("\n".join(lines), "\n".join(lines).replace("%x", "%y")) == ""
    moved = [s.replace("%7 = add", "%7 = subtract") for s in lines]
    shown = difference("\n".join(lines), "\n".join(moved))
    assert shown.splitlines()[0].startswith("@@") and "+   let %7 = subtract(%6, %x);" in shown and len(shown) < 1000
