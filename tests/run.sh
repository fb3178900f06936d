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
export HYPERBAND_BIN="${CARGO_TARGET_DIR:-$PWD/target}/debug/hyperband"

# Groups of tests that mostly wait: for the sweeper's schedule, the polls of SDKs, downloads. They run in the background, each in
# a process group of its own, so that an early end of this script ends their emulators too.
logs=$(mktemp -d)
declare -A groups
trap end EXIT

# end: ends the groups that run. Prints the output of one that failed before it was awaited.
end() {
  local name group
  for name in "${!groups[@]}"; do
    group=${groups[$name]}
    if kill -0 -- "-$group" 2> /dev/null; then
      # `timeout` passes the signal on to its group.
      kill "$group" 2> /dev/null || true
    elif ! wait "$group"; then
      cat "$logs/$name"
      echo "tests/run.sh: the group '$name' failed too" >&2
    fi
  done
  rm -rf "$logs"
}

# The longest time of a group, in seconds: more than a busy machine needs. A group that hangs fails with its output.
GROUP_SECONDS=2400

# start NAME PROGRAM [ARGUMENT…]: runs PROGRAM in the background, with its output in a file.
start() {
  set -m
  timeout --kill-after=60 "$GROUP_SECONDS" "${@:2}" < /dev/null > "$logs/$1" 2>&1 &
  groups[$1]=$!
  set +m
}

# finish NAME: waits for the end of a group, and prints its output if it failed.
finish() {
  local group=${groups[$1]}
  if ! wait "$group"; then
    unset "groups[$1]"
    cat "$logs/$1"
    echo "tests/run.sh: the group '$1' failed" >&2
    exit 1
  fi
  unset "groups[$1]"
  tail -n 4 "$logs/$1"
}

# example FOLDER VARIABLE: runs a small tuning of an example, and its tests.
example() {
  local work=${!2:-examples/$1/.work}
  "examples/$1/tune.sh" --quick > /dev/null
  "$work/venv/bin/python" "examples/$1/tests/test_example.py"
}

programs() {
  # The script that runs ends first, with its output.
  trap 'exit 143' TERM
  tests/training-service/run.sh
  tests/openapi/run.sh
  tests/page/run.sh
  example xgboost-allreduce XGB_EXAMPLE_WORK
  example dnn-parameter-server DNN_EXAMPLE_WORK
  tests/clients/run.sh
}

start environments tests/environments.sh
# The first build is with the features of the whole workspace, as all later ones, so nothing is built twice.
cargo nextest run --locked --workspace --profile "$profile" --no-run
cargo build --locked -q --workspace --bins --examples
finish environments
# The stack of infra/template.yaml, deployed to an emulator of AWS's services, with training jobs as real processes.
start stack tests/stack/run.sh
# The table's contract on other implementations of DynamoDB.
start dynamodb tests/dynamodb/run.sh
# The program with its clients, its page in a browser, and the examples.
export -f programs example
start programs bash -euo pipefail -c programs

cargo nextest run --locked --workspace --profile "$profile"
cargo test --locked --workspace --doc --quiet
for name in dynamodb programs stack; do
  finish "$name"
done
echo "all tests passed"
