#!/usr/bin/env bash
# Runs the contract of tables (tests/port-tests/src/table) on other implementations of DynamoDB: moto, dynalite and MiniStack.
# Needs Python 3.11+, and npm with Node 20+ for dynalite. Without npm it skips dynalite, except in CI. Installs the
# implementations into .work of this folder and of tests/stack.
set -euo pipefail
cd "$(dirname "$0")"

. ../stack/environment.sh
environment ../stack/.work/emulator ../stack/requirements.txt
environment .work/moto requirements.txt
if command -v npm > /dev/null; then
  if ! cmp -s package-lock.json .work/dynalite/installed.json; then
    rm -rf .work/dynalite
    mkdir -p .work/dynalite
    cp package.json package-lock.json .work/dynalite
    # Without the install scripts: the storage in memory needs none.
    npm ci --prefix .work/dynalite --ignore-scripts --no-audit --no-fund --silent
    cp package-lock.json .work/dynalite/installed.json
  fi
elif [ -n "${CI:-}" ]; then
  echo "npm is missing: install Node 20 or newer with npm" >&2
  exit 1
else
  echo "skipping dynalite: npm is missing"
fi

# The same features as the tests' build, so that cargo reuses it.
cargo build --locked --quiet --workspace --examples
exec ../stack/.work/emulator/bin/python test_contract.py "$@"
