#!/usr/bin/env bash
# Tests real clients of SageMaker: boto3, and this project's Python module. Installs them into an environment in $CLIENTS_WORK
# (default: .work in this folder). Needs Python 3.10 or newer, and $HYPERBAND_BIN, the path of a built `hyperband`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
: "${HYPERBAND_BIN:?set it to the path of a built hyperband}"
work=${CLIENTS_WORK:-.work}
. ../stack/environment.sh
environment "$work/boto3" requirements-boto3.txt
"$work/boto3/bin/python" -B test_module.py
