#!/usr/bin/env bash
# Installs the tools of the tests and runs all tests.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! cargo nextest --version > /dev/null 2>&1; then
  echo "installing cargo-nextest (once)"
  cargo install --locked cargo-nextest
fi

# Takes seconds and needs no build, so a broken link or a missing licence is found first.
python3 -B tests/stack/test_pack.py

profile=default
[ -z "${CI:-}" ] || profile=ci
# The first build is with the features of the whole workspace, as all later ones, so nothing is built twice.
cargo nextest run --locked --workspace --profile "$profile" --no-run
cargo build --locked -q --workspace --bins

# The stack of infra/template.yaml, deployed to an emulator of AWS's services, with training jobs as real processes. These tests
# mostly wait for the sweeper's schedule, so they run in the background.
log=$(mktemp)
# In a process group of their own, so that an early end of this script ends the emulators too.
set -m
tests/stack/run.sh > "$log" 2>&1 &
stack=$!
set +m
trap 'kill -- "-$stack" 2> /dev/null || true; rm -f "$log"' EXIT

cargo nextest run --locked --workspace --profile "$profile"
cargo test --locked --workspace --doc --quiet
# The table's contract on other implementations of DynamoDB, while the tests of the stack wait for the sweeper.
tests/dynamodb/run.sh

# The examples: their tests, and a small tuning of each with the program built above.
export HYPERBAND_BIN="${CARGO_TARGET_DIR:-$PWD/target}/debug/hyperband"
tests/training-service/run.sh
tests/openapi/run.sh
tests/page/run.sh
tests/clients/run.sh
examples/xgboost-allreduce/tune.sh --quick > /dev/null
work=${XGB_EXAMPLE_WORK:-examples/xgboost-allreduce/.work}
"$work/venv/bin/python" examples/xgboost-allreduce/tests/test_example.py
examples/dnn-parameter-server/tune.sh --quick > /dev/null
work=${DNN_EXAMPLE_WORK:-examples/dnn-parameter-server/.work}
"$work/venv/bin/python" examples/dnn-parameter-server/tests/test_example.py
wait "$stack" || { cat "$log"; exit 1; }
tail -n 4 "$log"
echo "all tests passed"
