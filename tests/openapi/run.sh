#!/usr/bin/env bash
# Tests the OpenAPI document of `hyperband serve`, with schemathesis and with a typed client that is generated from it. Creates its virtual environment in $OPENAPI_WORK
# (default: .work in this folder). Needs Python 3.11+, and $HYPERBAND_BIN, the path of a built `hyperband`.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${HYPERBAND_BIN:?set it to the path of a built hyperband}"
work=${OPENAPI_WORK:-$here/.work}
venv=$work/venv
if ! cmp -s "$here/requirements.txt" "$venv/installed.txt"; then
    mkdir -p "$work"
    "${PYTHON:-python3}" -m venv --clear "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$here/requirements.txt"
    cp "$here/requirements.txt" "$venv/installed.txt"
fi
PATH="$venv/bin:$PATH" "$venv/bin/python" "$here/test_document.py"
