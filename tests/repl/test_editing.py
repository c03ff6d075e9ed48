"""Editing at a terminal whose screen is looked at: signatures, brackets, history, keys, narrow and colourless screens."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.repl.screen import Screen

pytest.importorskip("pyte", reason="the screen is pyte's: pip install 'relaylang[test]'")


@pytest.fixture
def screen(tmp_path: Path) -> Iterator[Screen]:
    made = Screen(tmp_path)
    made.until("relay>")
    yield made
    made.close()


def last_line(screen: Screen) -> str:
    return screen.text.rstrip("\n").splitlines()[-1]


@pytest.mark.sweep
def test_signatures_and_completion_while_typing(screen: Screen) -> None:
    screen.send("nn.dense(%x, ")
    screen.until("nn.dense(data, weight, units: int | None, out_dtype: str | None = None)")
    row = next(i for i, line in enumerate(screen.screen.display) if "units: int" in line)
    column = screen.screen.display[row].index("weight")
    assert screen.screen.buffer[row][column].bold and not screen.screen.buffer[row][column - 3].bold
    screen.send("out\t")
    screen.until(lambda shown: "nn.dense(%x, out_dtype=" in shown)
    screen.send("\x03")
    screen.until(lambda shown: "units: int" not in shown)
    screen.send("nn.conv2d(%x, %w, \t")
    screen.until(lambda shown: "list of whole numbers; default [1, 1]" in shown)


@pytest.mark.sweep
def test_brackets_that_belong_together(screen: Screen) -> None:
    screen.send("add((1), (2))")
    screen.until("add((1), (2))")
    at = screen.screen.display[screen.screen.cursor.y].index("add(") + 3

    def marked(_: str) -> bool:
        cell = screen.screen.buffer[screen.screen.cursor.y][at]
        plain = screen.screen.buffer[screen.screen.cursor.y][at + 2]
        return cell.data == "(" and (cell.bg, cell.fg) != (plain.bg, plain.fg)

    screen.send("\x1b[D")
    screen.until(marked)


@pytest.mark.sweep
def test_history_is_searched(screen: Screen) -> None:
    screen.ask("add(20, 22)", "42 : int32")
    screen.ask("1 + 1", "2 : int32")
    screen.send("\x12add(2")
    screen.until("I-search")
    screen.send("\r")
    screen.until(lambda shown: shown.rstrip().endswith("relay> add(20, 22)") or shown.count("42 : int32") == 2)
    screen.send("\r")
    screen.until(lambda shown: shown.count("42 : int32") == 2)
    assert screen.quit() == 0


@pytest.mark.sweep
def test_vi_keys(tmp_path: Path) -> None:
    folder = tmp_path / ".config/relaylang"
    folder.mkdir(parents=True)
    (folder / "config.ini").write_text("[repl]\nkeys = vi\n")
    screen = Screen(tmp_path)
    screen.until("relay>")
    screen.ask(":keys", "vi keys")
    screen.send("xadd(1, 2)")
    screen.until("xadd(1, 2)")
    end = screen.screen.cursor.x
    screen.send("\x1b")
    screen.until(lambda _: screen.screen.cursor.x < end)  # Escape stands alone
    screen.send("0x")
    screen.until(lambda shown: shown.rstrip().endswith("> add(1, 2)"))
    screen.send("\r")
    screen.until("3 : int32")
    screen.ask(":keys emacs", "emacs keys")
    screen.send("add(1, 2)\x01(\x05, 4)\r")
    screen.until("(3, 4) : (int32, int32)")
    screen.close()


@pytest.mark.sweep
def test_twenty_columns(tmp_path: Path) -> None:
    screen = Screen(tmp_path, columns=20, rows=12)
    screen.until(">")
    screen.ask("add(1, 2)", "3 : int32")
    screen.send("nn.dense(%x, ")
    screen.until("nn.dense(…, weight")
    screen.send("\x03")
    screen.ask(":viz nn.relu(1f)", "…")
    assert screen.quit() == 0


@pytest.mark.sweep
@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colour(tmp_path: Path, env: dict[str, str]) -> None:
    screen = Screen(tmp_path, **env)
    screen.until("relay>")
    screen.ask("nn.rellu(1f)", "error[R0202]")
    screen.ask("def @f(%x: int32) { %x }", "@f : fn")
    colors = {cell.fg for row in screen.screen.buffer.values() for cell in row.values()}
    assert colors == {"default"}
    screen.close()


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"keys = vi\n", "is not right"),
        (b"\xff\xfe", "cannot be read"),
        (b"[repl]\nkeys = nano\nkees = vi\n", "keys is emacs or vi, not nano"),
        (b"[other]\nx = 1\n", "unknown section [other]"),
    ],
)
def test_a_broken_configuration_is_a_warning(tmp_path: Path, text: bytes, says: str) -> None:
    folder = tmp_path / "conf/relaylang"
    folder.mkdir(parents=True)
    (folder / "config.ini").write_bytes(text)
    screen = Screen(tmp_path, columns=200, XDG_CONFIG_HOME=str(tmp_path / "conf"))
    shown = screen.until("relay>")
    assert "warning[R0727]" in shown and says in shown and "Traceback" not in shown
    screen.ask("1 + 1", "2 : int32")
    assert (folder / "config.ini").read_bytes() == text
    screen.close()


@pytest.mark.sweep
def test_a_broken_history_is_a_warning(tmp_path: Path) -> None:
    folder = tmp_path / ".local/state/relaylang"
    folder.mkdir(parents=True)
    (folder / "history").write_bytes(b"\xff\0")
    screen = Screen(tmp_path)
    assert "warning[R0728]" in screen.until("relay>")
    screen.ask("1 + 1", "2 : int32")
    assert screen.quit() == 0
    assert (folder / "history").read_bytes() == b"\xff\0"


@pytest.mark.sweep
def test_names_beyond_ascii(screen: Screen) -> None:
    screen.ask('let %"größe" = 20', "20 : int32")
    screen.ask('%"größe" * 2 // 数', "40 : int32")
    screen.send('%"größe" + (')
    screen.until('%"größe" + (')


@pytest.mark.sweep
def test_pasting_a_megabyte(tmp_path: Path) -> None:
    screen = Screen(tmp_path, PROMPT_TOOLKIT_NO_CPR="1")
    screen.until("relay>")
    lines = "\n".join(f"%v{i} = add(1, {i});" for i in range(42_000)) + "\nadd(%v1, %v41999)"
    assert len(lines) > 1_000_000
    feeding = threading.Thread(target=lambda: screen.send(f"\x1b[200~{lines}\x1b[201~"))
    feeding.start()
    screen.until("add(%v1, %v41999)")
    feeding.join()
    screen.send("\x03")
    screen.until(lambda shown: shown.rstrip().endswith("relay>"))
    screen.ask("1 + 1", "2 : int32")
    screen.close()


@pytest.mark.sweep
def test_a_completer_that_fails_does_not_end_the_session(tmp_path: Path) -> None:
    # a folder that cannot be listed, a name cut in the middle of a bracket, an attribute of nothing
    screen = Screen(tmp_path)
    screen.until("relay>")
    for text in (":load /root/\x00no/\t", "nn.(\t", "]]](\t", '"\t'):
        screen.send(text.replace("\x00", ""))
        screen.send("\x03")
    screen.ask("1 + 1", "2 : int32")
    assert screen.quit() == 0


@pytest.mark.sweep
def test_closing_braces_go_back(screen: Screen) -> None:
    screen.send("def @f(%x: int32) {\rif (True) {\r%x\r} else {\r0\r}\r")
    screen.until(lambda shown: "    %x" in shown and "    0" in shown)
    rows = [line.rstrip() for line in screen.screen.display if line.strip()]
    assert [row[7:] for row in rows[-7:]] == ["def @f(%x: int32) {", "  if (True) {", "    %x", "  } else {", "    0", "  }", ""]
    screen.send("}\r")
    screen.until("@f : fn (int32) -> int32")


@pytest.mark.sweep
def test_the_rest_of_an_earlier_input_is_suggested(screen: Screen) -> None:
    screen.ask("add(20, 22)", "42 : int32")
    screen.send("ad")
    screen.until(lambda shown: shown.rstrip().endswith("relay> add(20, 22)"))
    row = screen.screen.cursor.y
    assert screen.screen.cursor.x == len("relay> ad")
    assert screen.screen.buffer[row][7].fg != screen.screen.buffer[row][12].fg
    screen.send("\x1b[C\r")
    screen.until(lambda shown: shown.count("42 : int32") == 2)


@pytest.mark.sweep
def test_a_heat_map_on_the_screen(screen: Screen) -> None:
    screen.ask("let %m = stack((0f, 1f, 2f, 3f), axis=0)", "Tensor[(4), float32]")
    screen.ask(":plot reshape(%m, newshape=[2, 2])", "greatest 3")
    screen.until(lambda shown: shown.count("▀") == 16 * 8)
    row = next(i for i, line in enumerate(screen.screen.display) if "▀" in line)
    assert screen.screen.buffer[row][0].fg != screen.screen.buffer[row][15].fg
    assert screen.quit() == 0


@pytest.mark.sweep
def test_the_browser_opens(tmp_path: Path) -> None:
    script = tmp_path / "browser"
    script.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/address\n')
    script.chmod(0o755)
    screen = Screen(tmp_path, BROWSER=f"{script} %s")
    screen.until("relay>")
    screen.ask(":viz nn.relu(1f)", "open in the browser")
    address = (tmp_path / "address").read_text().strip()
    assert "nn.relu" in Path(address.removeprefix("file://")).read_text()
    screen.quit()
    assert not Path(address.removeprefix("file://")).exists()
