#!/usr/bin/env bash
# Deploys infra/template.yaml to an emulator of AWS's services and tests what is there. Needs Python 3.11+ and the functions
# as `cargo build` makes them; what it installs lies in tests/stack/.work.
set -euo pipefail
cd "$(dirname "$0")"

. ./environment.sh
environment .work/emulator requirements.txt
environment .work/sam requirements-sam.txt

# As the tests build them: the same features, so nothing is built twice.
cargo build --locked --quiet --workspace --bins --tests

export SAM=$PWD/.work/sam/bin/sam
.work/emulator/bin/python -B test_archive.py
.work/emulator/bin/python -B test_stack.py "$@"
