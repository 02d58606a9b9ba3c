#!/bin/sh
# Put the policy oracle (OPA as a library, for tests only) into build/oracle/lib, pinned by hash.
# It says it wants Python 3.14 and needs none of it: plain ctypes, run on 3.11 to 3.14 (0.4.4, 2026-11).
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
mkdir -p build/oracle
cat > build/oracle/requirements.txt <<'R'
opa-golib-python-bindings==0.4.4 --hash=sha256:d411c901e14b8c7c3023e23e4a944f4cf429c1d31baf80e959e57d11efbfd24a
R
"$python" -m pip download -q --no-deps --require-hashes --python-version 3.14 --only-binary=:all: --platform manylinux_2_34_x86_64 \
  -d build/oracle -r build/oracle/requirements.txt
"$python" -m pip install -q --no-deps --no-index --ignore-requires-python --upgrade --target build/oracle/lib build/oracle/*.whl
