#!/usr/bin/env bash
# Builds the six functions as they are deployed: target/lambda/<function>/bootstrap.zip, where template.yaml looks for them.
# One run of cargo for all, so that each SDK is compiled once. Needs Rust by rustup and Python 3.11+; cargo-lambda and the
# linker for the other architecture come from PyPI into infra/.work.
#
#   infra/build.sh                    for arm64, the template's default
#   infra/build.sh x86_64
#   infra/build.sh arm64 --profile release     any further argument goes to `cargo lambda build`
set -euo pipefail
cd "$(dirname "$0")"
. ../tests/stack/environment.sh
environment .work/build build-requirements.txt

architecture=${1:-arm64}
case $architecture in
  arm64) flag=--arm64 target=aarch64-unknown-linux-gnu ;;
  x86_64) flag=--x86-64 target=x86_64-unknown-linux-gnu ;;
  *) echo "infra/build.sh: no architecture '$architecture'; give arm64 or x86_64" >&2; exit 2 ;;
esac
shift $(($# > 0))
case " $* " in *" --profile "*) ;; *) set -- --profile lambda "$@" ;; esac
# cargo-lambda asks before it adds a target.
if command -v rustup > /dev/null; then rustup target add "$target" 2> /dev/null; fi

read -ra functions < <(python3 -B pack.py names)
cd ..
PATH="$PWD/infra/.work/build/bin:$PATH"
cargo lambda build --locked "$flag" --output-format zip --lambda-dir target/lambda "${functions[@]/#/--package=}" "$@"
