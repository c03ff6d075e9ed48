"""Generates text with a compiled decoder, whose cache of keys and values is the state of a session.

    python examples/decoder/generate.py --prompt "The compiler"
    python examples/decoder/generate.py --temperature 0.7 --seed 3

`train.py` made the weights from the pages of docs/.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import relaylang as relay
from relaylang.backends import compile_module
from relaylang.runtime.session import Session

HERE = Path(__file__).resolve().parent
#: The positions of the cache, and each state with the number of the result that is its next value.
POSITIONS, STATE = 128, {"keys0": 1, "values0": 2, "keys1": 3, "values1": 4}


def weights() -> dict[str, np.ndarray]:
    """The network's weights as float32. The file has them as float16."""
    with np.load(HERE / "weights.npz") as file:
        return {name: file[name].astype(np.float32) for name in file.files}


def session(target: str = "c -num-threads=1") -> Session:
    """The compiled decoder with an empty cache."""
    mod = relay.parse((HERE / "decoder.relay").read_text(), "decoder.relay")
    return compile_module(mod, target, params=weights()).session(STATE)


def generate(decoder: Session, prompt: bytes, count: int, temperature: float = 0.0, seed: int = 0) -> Iterator[int]:
    """The bytes that follow a prompt, one by one: the likeliest, or by chance where the temperature is above 0.

    Prompt and text together take at most `POSITIONS` bytes. The session begins again.
    """
    rng = np.random.default_rng(seed)
    decoder.reset()
    for position, token in enumerate(prompt):
        scores = decoder.run(token=np.int32(token), position=np.int32(position))
    for position in range(len(prompt), min(POSITIONS, len(prompt) + count)):
        if temperature > 0:
            shares = np.exp((scores - scores.max()).astype(np.float64) / temperature)
            token = int(rng.choice(len(shares), p=shares / shares.sum()))
        else:
            token = int(scores.argmax())
        yield token
        scores = decoder.run(token=np.int32(token), position=np.int32(position))


def main() -> int:
    """Print the prompt and the text that follows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompt", default="The compiler", help="ASCII text that the output continues")
    parser.add_argument("--count", type=int, default=POSITIONS, help=f"bytes; with the prompt at most {POSITIONS}")
    parser.add_argument("--temperature", type=float, default=0.0, help="0 takes the likeliest byte each time")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the choices by temperature")
    given = parser.parse_args()
    if not given.prompt.isascii() or not 0 < len(given.prompt) < POSITIONS:
        parser.error(f"the prompt must be 1 to {POSITIONS - 1} characters of ASCII")
    sys.stdout.write(given.prompt)
    for token in generate(session(), given.prompt.encode(), given.count, given.temperature, given.seed):
        sys.stdout.write(chr(token))
        sys.stdout.flush()
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
