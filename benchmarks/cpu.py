"""Times compiled networks beside onnxruntime and OpenVINO, and products beside numpy's BLAS.

    python benchmarks/cpu.py [NAME ...] [--rounds N] [--threads 1,2] [--march x86-64-v3] [--cpu-time] [--write]

All of them get the same network, weights and inputs, in one process for each network. Each round runs one after the other for 0.2
seconds. A figure is the least wall time of a whole call, numpy arrays in and out, in milliseconds. A ratio is relaylang's
time by that of the faster peer. The build time is wall time in seconds, without relaylang's cache. `worst` is
the greatest difference from onnxruntime, relative to the greatest value. For integers it is the share of the values that
differ, and the greatest difference. OpenVINO computes in float32.

`--march=x86-64-v3` compares code for AVX2: it limits OpenVINO's oneDNN and OpenBLAS to AVX2, too. No setting limits MLAS.
So onnxruntime takes no part where the processor has AVX-512. OpenVINO runs MLAS in fully connected layers; a percentage
behind its figure is their share of its time. `--cpu-time` gives the median of the process's own time on one thread, for
machines with other work. `--write` replaces this machine's table of this instruction set in benchmarks/results/cpu.md.
RELAY_SHARED names the folder of the classic networks' texts, RELAY_NETWORKS that of wheels with real networks
(`tests/frontends/networks.py`). Peers that are not installed take no part.
"""

from __future__ import annotations

import argparse
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

try:
    from benchmarks.cpu_networks import NETWORKS, Absent
except ImportError as missing:
    sys.exit(f"{missing.name} is not installed, and writes the networks for the peers: pip install 'relaylang[onnx,peers]'")
from benchmarks.cpu_peers import PEERS, Run, build, in_onnxruntime, in_openvino, ours, peak, share_of_mlas, times
from benchmarks.machine import model
from relaylang.diagnostics import RelayError
from relaylang.runtime.files import atomic_write
from relaylang.syntax import parse
from relaylang.typing import check

RESULTS = Path(__file__).parent / "results" / "cpu.md"
#: OpenBLAS reads this when it is loaded; so do the limits to AVX2.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
AVX2 = {"ONEDNN_MAX_CPU_ISA": "AVX2", "OPENBLAS_CORETYPE": "Haswell"}
#: rows, columns, depth of `x @ w.T`
PRODUCTS = [
    (1, 1000, 512),
    (1, 4096, 4096),
    (16, 1024, 1024),
    (64, 512, 512),
    (128, 3072, 768),
    (256, 256, 256),
    (512, 512, 512),
    (1024, 1024, 1024),
]
KINDS = ("AVX-512", "AVX2", "other")


def flags() -> set[str]:
    """What the processor has, as Linux names it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return set(next((line.partition(":")[2] for line in lines if line.startswith("flags")), "").split())


def kind(march: str) -> str:
    """The kind of machine that code is compiled for."""
    if "avx512f" in flags() and march in ("", "native", "x86-64-v4"):
        return "AVX-512"
    return "AVX2" if "avx2" in flags() else "other"


def limited(march: str) -> bool:
    """Whether the processor has wider vectors than the code."""
    return kind(march) != "AVX-512" and "avx512f" in flags()


def difference(found: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> str:
    """The worst of all outputs: relative for floats, a share and a distance for integers."""
    worst = 0.0
    for f, w in zip(found, wanted, strict=True):
        if f.shape != w.shape or f.dtype != w.dtype:
            return f"{f.dtype}{list(f.shape)}, not {w.dtype}{list(w.shape)}"
        apart = np.abs(f.astype("f8") - w.astype("f8"))
        if w.dtype.kind in "iu":
            return f"{100 * np.mean(apart > 0):.0f} % by ≤ {apart.max():.0f}"
        worst = max(worst, float(apart.max()) / (float(np.abs(w).max()) or 1.0))
    return f"{worst:.0e}"


def attempt(make: Callable[[], Run]) -> Run | str:
    """What makes a peer ready, or why it fails."""
    try:
        run = make()
        run()
        return run
    except Exception as e:  # peers fail in their own ways; the table shows which
        print(f"fails: {str(e).strip()[:300]}", file=sys.stderr)
        return e.diagnostics[0].code if isinstance(e, RelayError) else "fails"


@dataclass(frozen=True)
class Settings:
    """The choices of the command line. `peers` have their times taken."""

    rounds: int
    threads: tuple[int, ...]
    march: str
    cpu_time: bool
    peers: tuple[str, ...]

    def arguments(self) -> list[str]:
        """The command line's arguments for these choices."""
        found = ["--rounds", str(self.rounds), "--threads", ",".join(map(str, self.threads))]
        found += [f"--march={self.march}"] if self.march else []
        return found + ["--cpu-time"] if self.cpu_time else found

    def measured(self, runs: dict[str, Callable[[], object]]) -> dict[str, float]:
        """The time of a call of each, in milliseconds."""
        found = times(runs, self.rounds, time.process_time if self.cpu_time else time.perf_counter)
        # Systems under load count some calls short, so the least processor time says nothing.
        return {name: median(all_times) if self.cpu_time else min(all_times) for name, all_times in found.items()}


def network(name: str, settings: Settings) -> str:
    """A row of the table."""
    case = NETWORKS[name]()
    try:
        artifact, seconds = build(case.module, case.params, settings.march)
        built = f"{seconds:.1f}"
    except RelayError as e:
        print(e, file=sys.stderr)
        artifact, built = None, e.diagnostics[0].code
    cells: list[str] = []
    worst: list[str] = []
    for number in settings.threads:
        runs: dict[str, Run | str] = {
            "ours": attempt(lambda n=number: ours(artifact, case.inputs, n)) if artifact is not None else built,
            "onnxruntime": attempt(lambda n=number: in_onnxruntime(case, n)) if PEERS["onnxruntime"] else "-",
            "openvino": attempt(lambda n=number: in_openvino(case, n)) if "openvino" in settings.peers else "-",
        }
        ready: dict[str, Run] = {k: v for k, v in runs.items() if callable(v)}
        if not worst and "onnxruntime" in ready:
            wanted = ready["onnxruntime"]()
            worst = [difference(ready[k](), wanted) if k in ready else "-" for k in ("ours", "openvino")]
        if "onnxruntime" not in settings.peers:
            ready.pop("onnxruntime", None)
        best = settings.measured(ready)
        figures = {k: f"{best[k]:.2f}" if k in best else "-" for k in runs}
        if "openvino" in best and limited(settings.march) and (share := share_of_mlas(case, number)) > 0.01:
            figures["openvino"] += f" ({100 * share:.0f} %)"
        cells += figures.values()
        others = [t for k, t in best.items() if k != "ours"]
        cells.append(f"{best['ours'] / min(others):.2f}" if "ours" in best and others else "-")
    return f"| {' | '.join([name, *cells, built, *(worst or ['-', '-'])])} |"


def networks(names: Sequence[str], settings: Settings) -> Iterator[str]:
    heads = [f"{n} thread{'s' * (n > 1)}: ours | onnxruntime | OpenVINO | ratio" for n in settings.threads]
    yield f"| network | {' | '.join(heads)} | build s | worst | OpenVINO's |"
    yield "|---" * (4 * len(settings.threads) + 4) + "|"
    for name in names:
        row = apart(name, settings)
        if row:
            yield row


def apart(name: str, settings: Settings) -> str:
    """A row of the table, from a process of its own. OpenVINO crashes on some networks, at least with a limit."""
    command = [sys.executable, __file__, name, "--row", *settings.arguments()]
    for peers in (settings.peers, tuple(p for p in settings.peers if p != "openvino")):
        done = subprocess.run([*command, "--peers", ",".join(peers)], stdout=subprocess.PIPE, text=True)
        if done.returncode == 0:
            return done.stdout.strip()
        print(f"{name}: the process ended with {done.returncode}, beside {' and '.join(peers) or 'nobody'}", file=sys.stderr)
    return ""


def products(settings: Settings) -> Iterator[str]:
    yield "| rows × columns × depth | ours ms | numpy ms | ratio | GFLOP/s | share of the peak |"
    yield "|---|---|---|---|---|---|"
    turning, operations = peak(kind(settings.march) == "AVX-512")
    for rows, columns, depth in PRODUCTS:
        mod = parse(f"""#[version = "0.0.5"]
def @main(%x: Tensor[({rows}, {depth}), float32], %w: Tensor[({columns}, {depth}), float32]) {{
  nn.dense(%x, %w, units={columns})
}}
""").module
        assert mod is not None
        check(mod)
        rng = np.random.default_rng(0)
        x, w = (rng.standard_normal((n, depth), np.float32) for n in (rows, columns))
        run = ours(build(mod, {"w": w}, settings.march)[0], {"x": x}, 1)
        best = settings.measured({"ours": run, "numpy": lambda x=x, w=w: x @ w.T, "peak": turning})
        speed, top = 2e-6 * rows * columns * depth / best["ours"], 1e3 * operations / best["peak"]
        yield (
            f"| {rows} × {columns} × {depth} | {best['ours']:.3f} | {best['numpy']:.3f} | {best['ours'] / best['numpy']:.2f} "
            f"| {speed:.0f} | {speed / top:.2f} of {top:.0f} |"
        )


def machine() -> str:
    """The processor, the compiler and the versions."""
    has = [f for f in ("avx2", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8") if f in flags()]
    compiler = subprocess.run(["cc", "--version"], capture_output=True, text=True).stdout.splitlines()[:1]
    there = [*(name for name, package in PEERS.items() if package is not None), "numpy"]
    versions = [f"{name} {metadata.version(name)}" for name in there]
    return f"{model()} ({', '.join(has)}), {os.cpu_count()} processors; {', '.join(compiler)}. Versions: {', '.join(versions)}"


def notes(settings: Settings) -> Iterator[str]:
    """The machine, and what to know about the figures."""
    yield machine() + "."
    limit = os.environ.get("ONEDNN_MAX_CPU_ISA")
    command = " ".join(["python benchmarks/cpu.py", *settings.arguments()])
    set_by = f"ONEDNN_MAX_CPU_ISA={limit} " if limit and limit != AVX2["ONEDNN_MAX_CPU_ISA"] else ""
    yield f"`{set_by}{command} --write` repeats the measurement."
    if limit:
        yield f"OpenVINO's oneDNN uses instructions up to {limit}."
        if limited(settings.march) and "openvino" in settings.peers:
            yield "Its fully connected layers run MLAS, with AVX-512. A percentage behind its figure is their share of its time."
    elif "amx_int8" in flags():
        yield "OpenVINO multiplies int8 with AMX."
    absent = [name for name, package in PEERS.items() if package is None]
    if absent:
        yield f"{' and '.join(absent)} {'is' if len(absent) == 1 else 'are'} not installed here: `pip install {' '.join(absent)}`."
    elif "onnxruntime" not in settings.peers and limited(settings.march):
        yield "onnxruntime would use AVX-512 here, and takes no part."
    if settings.cpu_time:
        yield "The times are medians of the process's own time, not of the clock on the wall."


HEAD = """# Compiled networks beside onnxruntime and OpenVINO

All get the same network, weights and inputs, in one process and in turn. Networks have batch 1.
A figure is the least wall time of a whole call in milliseconds, numpy arrays in and out.
A ratio is relaylang's time by that of the faster peer. The build has no cache.
Someone without a figure refuses the network or crashes.
"Worst" is the greatest difference from onnxruntime, relative to the greatest value. For int8 networks it is the share of
results that differ, and the greatest difference. The next column has the same for OpenVINO, which computes in float32.
The head of `benchmarks/cpu.py` describes the measurement."""


def section(march: str) -> str:
    """The title of this machine's table for an instruction set."""
    return f"{kind(march)}: {model()}"


def written(title: str, body: str, text: str) -> str:
    """The report with a section replaced; those of other machines and instruction sets stay."""
    parts = dict(part.partition("\n")[::2] for part in text.split("\n## ")[1:])
    parts[title] = body
    order = sorted(parts, key=lambda t: (KINDS.index(t.partition(":")[0]), t))
    return "\n\n".join([HEAD, *[f"## {t}\n\n{parts[t].strip()}" for t in order]]) + "\n"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(NETWORKS)}, dense; by default all")
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--threads", default="1,2", help="numbers with commas between")
    options.add_argument("--march", default="", help="the processor that relaylang compiles for")
    options.add_argument("--cpu-time", action="store_true", help="one thread's time, as the system counts it")
    options.add_argument("--peers", help="onnxruntime, openvino or both: whose times to take")
    options.add_argument("--row", action="store_true", help="print the row of one network alone")
    options.add_argument("--write", action="store_true", help="write all tables into benchmarks/results/cpu.md")
    given = options.parse_args()
    unknown = set(given.names) - {*NETWORKS, "dense"}
    if unknown:
        options.error(f"no network {', '.join(sorted(unknown))}; there are {', '.join(NETWORKS)}")
    if given.row and len(given.names) != 1:
        options.error("--row wants one network")
    if given.write and given.names:
        options.error("--write puts every network into the tables: name none")
    threads = tuple(int(n) for n in given.threads.split(","))
    if given.cpu_time and threads != (1,):
        options.error("--cpu-time is for one thread: add --threads=1")
    wanted = {**ONE_THREAD, **(AVX2 if given.march == "x86-64-v3" else {})}
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        os.environ.update(wanted)
        os.execv(sys.executable, [sys.executable, *sys.argv])
    logging.disable(logging.WARNING)
    there = [name for name, package in PEERS.items() if package is not None]
    if given.peers is not None:
        there = [name for name in given.peers.split(",") if name in there]
    elif limited(given.march):
        there = [name for name in there if name != "onnxruntime"]
    settings = Settings(given.rounds, threads, given.march, given.cpu_time, tuple(there))
    if given.row:
        try:
            print(network(given.names[0], settings))
        except Absent as absent:
            print(f"{given.names[0]}: {absent}", file=sys.stderr)
        return
    lines = [" ".join(notes(settings)), ""]
    print(lines[0] + "\n", flush=True)
    load = os.getloadavg()[0]

    def show(rows: Iterator[str]) -> None:
        for row in rows:
            print(row, flush=True)
            lines.append(row)

    names = [name for name in NETWORKS if name in given.names or not given.names]
    if names:
        show(networks(names, settings))
    if not given.names or "dense" in given.names:
        show(iter(["", "`nn.dense` with bound weights on one thread, beside numpy's BLAS and multiply-adds in registers:", ""]))
        show(products(settings))
    show(iter(["", f"The load of the machine was {load:.1f} at the start and {os.getloadavg()[0]:.1f} at the end."]))
    if given.write:
        before = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else ""
        atomic_write(RESULTS, written(section(given.march), "\n".join(lines), before))


if __name__ == "__main__":
    main()
