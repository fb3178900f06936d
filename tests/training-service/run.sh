#!/usr/bin/env bash
# Tests `hyperband training-service` with boto3 and the AWS CLI. Creates its virtual environment in $TRAINING_SERVICE_WORK
# (default: .work in this folder). Needs Python 3.9 or newer, and $HYPERBAND_BIN, the path of a built `hyperband`.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${HYPERBAND_BIN:?set it to the path of a built hyperband}"
work=${TRAINING_SERVICE_WORK:-$here/.work}
venv=$work/venv
if ! cmp -s "$here/requirements.txt" "$venv/installed.txt"; then
    mkdir -p "$work"
    "${PYTHON:-python3}" -m venv --clear "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$here/requirements.txt"
    cp "$here/requirements.txt" "$venv/installed.txt"
fi
PATH="$venv/bin:$PATH" "$venv/bin/python" "$here/test_clients.py"
