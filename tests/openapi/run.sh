#!/usr/bin/env bash
# Tests the OpenAPI document of `hyperband serve`, with schemathesis and with a typed client that is generated from it. Installs
# its tools into .work of this folder. Needs Python 3.11+, and $HYPERBAND_BIN, the path of a built `hyperband`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
: "${HYPERBAND_BIN:?set it to the path of a built hyperband}"
. ../stack/environment.sh
environment .work/venv requirements.txt
PATH="$PWD/.work/venv/bin:$PATH" .work/venv/bin/python test_document.py
