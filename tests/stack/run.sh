#!/usr/bin/env bash
# Deploys infra/template.yaml to an emulator of AWS's services, tests the stack and runs tunings on it. Needs Python 3.11+, `jq`
# and `curl`. Builds the functions with `cargo build`. Installs its tools into tests/stack/.work and infra/.work.
set -euo pipefail
cd "$(dirname "$0")"

. ./environment.sh
environment .work/emulator requirements.txt
environment .work/sam requirements-sam.txt
environment .work/aws requirements-aws.txt
environment ../../infra/.work/build ../../infra/build-requirements.txt
environment ../../infra/.work/release ../../infra/release-requirements.txt

# The same features as the tests' build, so that cargo reuses it.
cargo build --locked --quiet --workspace --bins --tests

export SAM=$PWD/.work/sam/bin/sam AWS=$PWD/.work/aws/bin/aws
CARGO_LAMBDA_BIN=$(realpath ../../infra/.work/build/bin)
export CARGO_LAMBDA_BIN
if [ $# -gt 0 ]; then
  # Runs one file: tests/stack/run.sh test_tuning.py [TEST…]
  exec .work/emulator/bin/python "$@"
fi
# Each of these five has its own emulator and mostly waits for the sweeper's schedule, so they run in parallel.
logs=$(mktemp -d)
trap 'trap "" TERM; exit 143' TERM
trap 'wait; cat "$logs"/*; rm -rf "$logs"' EXIT
.work/emulator/bin/python test_clients.py > "$logs/clients" 2>&1 &
clients=$!
.work/emulator/bin/python test_tuning.py > "$logs/tunings" 2>&1 &
tunings=$!
.work/emulator/bin/python test_samples.py > "$logs/samples" 2>&1 &
samples=$!
.work/emulator/bin/python test_parents.py > "$logs/parents" 2>&1 &
parents=$!
.work/emulator/bin/python test_polling.py > "$logs/polling" 2>&1 &
polling=$!
.work/emulator/bin/python test_archive.py
.work/emulator/bin/python test_stack.py
.work/emulator/bin/python test_stages.py
.work/emulator/bin/python test_documents.py
.work/emulator/bin/python test_doctor.py
.work/emulator/bin/python test_events.py
failed=0
wait "$clients" || failed=1
wait "$samples" || failed=1
wait "$tunings" || failed=1
wait "$parents" || failed=1
wait "$polling" || failed=1
exit "$failed"
