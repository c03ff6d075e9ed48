#!/usr/bin/env bash
# Makes a virtual environment and installs relaylang into it: `scripts/setup.sh VENV`.
# PYTHON names the Python (default: the newest suitable one on the path).
# If pyproject.toml and the sources did not change since the last call, it does nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${1:-.venv}

say() { printf 'setup: %s\n' "$*" >&2; }

suitable() {
  "$1" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2])' >/dev/null 2>&1
}

find_python() {
  if [ -n "${PYTHON:-}" ]; then
    suitable "$PYTHON" && { echo "$PYTHON"; return; }
    say "$PYTHON is not a Python >= 3.10"
    return 1
  fi
  for name in python3 python3.13 python3.12 python3.11 python3.10; do
    command -v "$name" >/dev/null 2>&1 && suitable "$name" && { echo "$name"; return; }
  done
  say "no Python >= 3.10 found; on Debian or Ubuntu: sudo apt-get install python3 python3-venv (or name one: make PYTHON=/path/to/python)"
  return 1
}

digest() { { cat "$@" 2>/dev/null || true; } | sha256sum | cut -c1-16; }
sources() { find relaylang grammar interpreter repl -type f ! -name '*.pyc' ! -path '*/__pycache__/*' | LC_ALL=C sort; }

want_deps=$(digest pyproject.toml setup.py scripts/setup.sh)
want_code=$( { sources; sources | tr '\n' '\0' | xargs -0 cat; cat pyproject.toml scripts/make_stubs.py; } | sha256sum | cut -c1-16)
have_deps=$(cat "$venv/.deps" 2>/dev/null || true)
have_code=$(cat "$venv/.code" 2>/dev/null || true)

if [ ! -x "$venv/bin/python" ]; then
  python=$(find_python)
  say "making $venv with $("$python" --version 2>&1)"
  rm -rf "$venv"
  if ! "$python" -m venv "$venv" >"/tmp/relay-venv.$$" 2>&1; then
    rm -rf "$venv"
    if command -v virtualenv >/dev/null 2>&1; then
      virtualenv -q -p "$python" "$venv"
    else
      cat "/tmp/relay-venv.$$" >&2
      rm -f "/tmp/relay-venv.$$"
      say "this Python cannot make virtual environments; on Debian or Ubuntu: sudo apt-get install python3-venv"
      exit 1
    fi
  fi
  rm -f "/tmp/relay-venv.$$"
  have_deps= have_code=
fi

export PIP_DISABLE_PIP_VERSION_CHECK=1
# Python compiles modules at import; the tests import few of the installed ones
install() { "$venv/bin/python" -m pip install --quiet --no-compile "$@"; }

if [ "$want_deps" != "$have_deps" ]; then
  say "installing relaylang and its dependencies (once, about a minute)"
  rm -rf build
  # pip skips an equal version, so remove the old one first
  [ -z "$have_code" ] || "$venv/bin/python" -m pip uninstall --quiet --yes relaylang
  if ! install '.[all]'; then
    # the NPU compiler lacks wheels for some Pythons; its build needs the headers (python3-dev)
    say "pip cannot install the extra ethosu (see above); its tests and examples skip"
    install '.[docs,golden,lsp,notebook,onnx,safetensors,test,tflite]'
  fi
  rm -rf build
  echo "$want_deps" >"$venv/.deps"
  echo "$want_code" >"$venv/.code"
elif [ "$want_code" != "$have_code" ]; then
  rm -rf build
  # the environment has what the build needs: the core's dependencies, and setuptools of the extra `test`
  install --no-deps --no-build-isolation --force-reinstall .
  rm -rf build
  echo "$want_code" >"$venv/.code"
fi
