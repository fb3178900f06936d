#!/usr/bin/env bash
# Builds the six functions for deployment: target/lambda/<function>/bootstrap.zip, where template.yaml expects them.
# One run of cargo builds all, so that each SDK is compiled once. Needs Rust by rustup and Python 3.11+. The script installs
# cargo-lambda and the linker for the other architecture from PyPI into infra/.work.
#
#   infra/build.sh                    for arm64, the template's default
#   infra/build.sh x86_64
#   infra/build.sh arm64 --profile release     further arguments go to `cargo lambda build`
set -euo pipefail
cd "$(dirname "$0")"
. ../tests/stack/environment.sh
environment .work/build build-requirements.txt

architecture=${1:-arm64}
case $architecture in
  arm64) flag=--arm64 target=aarch64-unknown-linux-gnu ;;
  x86_64) flag=--x86-64 target=x86_64-unknown-linux-gnu ;;
  *) echo "infra/build.sh: unknown architecture '$architecture': expected arm64 or x86_64" >&2; exit 2 ;;
esac
shift $(($# > 0))
case " $* " in *" --profile "*) ;; *) set -- --profile lambda "$@" ;; esac
# Without the target, cargo-lambda asks for a confirmation.
if command -v rustup > /dev/null; then rustup target add "$target" 2> /dev/null; fi

read -ra functions < <(python3 -B pack.py names)
cd ..
PATH="$PWD/infra/.work/build/bin:$PATH"
cargo lambda build --locked "$flag" --output-format zip --lambda-dir target/lambda "${functions[@]/#/--package=}" "$@"
