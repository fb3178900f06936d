#!/usr/bin/env bash
# Makes a release in target/dist: hyperband-<version>-<arch>.zip for arm64 and x86_64, which deploy with the SAM CLI alone, the
# command-line program for this machine if `cargo build --release -p cli` has built it, and SHA256SUMS. The version is that of
# Cargo.toml. The same programs and documents are packed to the same bytes.
#
#   infra/release.sh                     both architectures
#   infra/release.sh arm64               one
#   infra/release.sh --profile dev       builds nothing: packs the functions that `cargo build` left, for this machine
#   infra/release.sh --output FOLDER     elsewhere than target/dist
set -euo pipefail
cd "$(dirname "$0")"

architectures=() profile=lambda output=''
while [ $# -gt 0 ]; do
  case $1 in
    arm64 | x86_64) architectures+=("$1"); shift ;;
    --profile | --output)
      [ $# -ge 2 ] || { echo "infra/release.sh: $1 needs a value" >&2; exit 2; }
      if [ "$1" = --profile ]; then profile=$2; else output=$(realpath -m "$2"); fi
      shift 2 ;;
    *) sed -n '2,$s/^# \{0,1\}//p' release.sh >&2; exit 2 ;;
  esac
done
target=$(realpath -m "${CARGO_TARGET_DIR:-../target}")
here=$(uname -m)
[ "$here" != aarch64 ] || here=arm64
version=$(python3 -B pack.py version)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ "$profile" = dev ]; then
  [ "${architectures[*]:-$here}" = "$here" ] || { echo "infra/release.sh: --profile dev is for $here only" >&2; exit 2; }
  output=${output:-$target/dist-dev}
  mkdir -p "$output"
  for function in $(python3 -B pack.py names); do
    mkdir "$work/$function"
    strip -o "$work/$function/bootstrap" "$target/debug/$function"
  done
  python3 -B pack.py functions "$here" "$work" "$output/hyperband-$version-$here.zip" fast
else
  output=${output:-$target/dist}
  mkdir -p "$output"
  [ ${#architectures[@]} -gt 0 ] || architectures=(arm64 x86_64)
  for architecture in "${architectures[@]}"; do
    ./build.sh "$architecture" --profile "$profile"
    ../tests/measure_functions.py --sizes
    python3 -B pack.py functions "$architecture" ../target/lambda "$output/hyperband-$version-$architecture.zip"
  done
  if [ -x "$target/release/hyperband" ]; then
    strip -o "$work/hyperband" "$target/release/hyperband"
    python3 -B pack.py program "$work/hyperband" "$output/hyperband-$version-program-$(uname -s | tr '[:upper:]' '[:lower:]')-$here.zip"
  fi
fi
python3 -B pack.py sums "$output"
cat "$output/SHA256SUMS"
