#!/usr/bin/env bash
# Installs what the tests need and runs them all. The second of the README's two commands.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! cargo nextest --version > /dev/null 2>&1; then
  echo "installing cargo-nextest (once)"
  cargo install --locked cargo-nextest
fi

profile=default
[ -z "${CI:-}" ] || profile=ci
cargo nextest run --locked --workspace --profile "$profile"
cargo test --locked --workspace --doc --quiet
