#!/usr/bin/env bash
# Tests the page of a tuning in headless Chromium: reports of real local tunings, simulated ones, and live pages. With
# PAGE_TIMES=1, also measures how long pages with up to 10,000 trials take to open. Needs npm with Node 20+ and Chromium, and
# skips without them. HYPERBAND_BIN is the program, CHROMIUM the browser.
set -euo pipefail
cd "$(dirname "$0")"

browser=${CHROMIUM:-}
for name in chromium chromium-browser google-chrome; do
  [ -n "$browser" ] || browser=$(command -v "$name" || true)
done
if [ -z "$browser" ] || ! command -v npm > /dev/null; then
  echo "skipping the tests of the page: Chromium or npm is missing"
  exit 0
fi
if ! cmp -s package-lock.json .work/installed.json; then
  mkdir -p .work
  cp package.json package-lock.json .work
  npm ci --prefix .work --ignore-scripts --no-audit --no-fund --silent
  cp package-lock.json .work/installed.json
fi

# The same features as the tests' build, so that cargo reuses it.
target=${CARGO_TARGET_DIR:-$PWD/../../target}
cargo build --locked --quiet --workspace --examples
if [ -z "${HYPERBAND_BIN:-}" ]; then
  cargo build --locked --quiet --workspace --bins
  HYPERBAND_BIN=$target/debug/hyperband
fi
export CHROMIUM=$browser HYPERBAND_BIN SIMULATED_PAGE=$target/debug/examples/simulated_page
exec node --test --test-timeout=1800000 --test-reporter=spec "$@" test_page.mjs test_live.mjs
