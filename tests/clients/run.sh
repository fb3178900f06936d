#!/usr/bin/env bash
# Tests real clients of SageMaker against `hyperband serve`: boto3, the AWS CLI, versions 2 and 3 of the SageMaker Python SDK, and
# this project's Python module, also with pandas and MLflow. Installs each into its own environment in .work of this folder. Needs
# Python 3.11 or newer, and $HYPERBAND_BIN, the path of a built `hyperband`. With $CLIENTS_STACK, the address of a `hyperband
# proxy`, the clients are tested with the stack behind it (tests/stack/test_clients.py); with $CLIENTS_ALL, by all tests.
#
#     run.sh                                       runs all tests
#     run.sh boto3|sdk2|sdk3|tune [FILE [TEST…]]   runs the tests of one environment, or of one file there
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
: "${HYPERBAND_BIN:?set it to the path of a built hyperband}"
. ../stack/environment.sh
declare -A files=([boto3]="test_boto3.py test_cli.py" [sdk2]="test_sdk2.py test_notebook.py" [sdk3]="test_sdk3.py")
# The module's own tests use no server.
[ -n "${CLIENTS_STACK:-}" ] || files+=([boto3]="${files[boto3]} test_module.py" [tune]="test_tune.py")

# run ENVIRONMENT FILE [TEST…]
run() {
  environment ".work/$1" "requirements-$1.txt"
  # The SDKs warn of their own old versions.
  ".work/$1/bin/python" -W ignore "${@:2}"
}
if [ $# -gt 1 ]; then
  run "$@"
  exit
fi
# The tests mostly wait for the SDKs' polls, so the environments run in parallel, each in a process group that ends with this
# script.
logs=$(mktemp -d)
declare -A running
trap 'trap "" TERM; exit 143' TERM
trap 'for group in "${running[@]}"; do kill -- "-$group" 2> /dev/null || true; done; wait; cat "$logs"/*; rm -rf "$logs"' EXIT
set -m
for name in ${1:-${!files[@]}}; do
  (for file in ${files[$name]}; do run "$name" "$file"; done) > "$logs/$name" 2>&1 &
  running[$name]=$!
done
failed=0
for name in "${!running[@]}"; do
  wait "${running[$name]}" || failed=1
done
exit "$failed"
