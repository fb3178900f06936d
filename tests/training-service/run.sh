#!/usr/bin/env bash
# Tests `hyperband training-service` with boto3 and the AWS CLI. Installs them into .work of this folder. Needs Python 3.11+, and
# $HYPERBAND_BIN, the path of a built `hyperband`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
: "${HYPERBAND_BIN:?set it to the path of a built hyperband}"
. ../stack/environment.sh
environment .work/venv requirements.txt
PATH="$PWD/.work/venv/bin:$PATH" .work/venv/bin/python test_clients.py
