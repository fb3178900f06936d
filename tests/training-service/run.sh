#!/usr/bin/env bash
# Drives `hyperband training-service` by boto3 and the AWS CLI. Makes its virtual environment below $TRAINING_SERVICE_WORK
# (.work beside this script) and needs Python 3.9 or newer, and $HYPERBAND_BIN, a built `hyperband`.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${HYPERBAND_BIN:?names a built hyperband}"
work=${TRAINING_SERVICE_WORK:-$here/.work}
venv=$work/venv
if ! cmp -s "$here/requirements.txt" "$venv/installed.txt"; then
    mkdir -p "$work"
    "${PYTHON:-python3}" -m venv --clear "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$here/requirements.txt"
    cp "$here/requirements.txt" "$venv/installed.txt"
fi
PATH="$venv/bin:$PATH" "$venv/bin/python" "$here/test_clients.py"
