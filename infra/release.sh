#!/usr/bin/env bash
# Builds a release in target/dist: hyperband-<version>-<arch>.zip for arm64 and x86_64, the command-line program for this machine,
# and SHA256SUMS. The archives deploy with the SAM CLI alone, or without it by their translated template. The version is that of
# Cargo.toml. The same programs and documents give the same bytes. Installs the translator from PyPI into infra/.work.
#
#   infra/release.sh                     both architectures, and the program
#   infra/release.sh arm64               one architecture, and the program
#   infra/release.sh --no-program        without the program
#   infra/release.sh --profile dev       builds nothing: packs the functions of `cargo build`, for this machine
#   infra/release.sh --output FOLDER     writes to FOLDER instead of target/dist
set -euo pipefail

architectures=() profile=lambda output='' program=true
while [ $# -gt 0 ]; do
  case $1 in
    arm64 | x86_64) architectures+=("$1"); shift ;;
    --no-program) program=false; shift ;;
    --profile | --output)
      [ $# -ge 2 ] || { echo "infra/release.sh: $1 needs a value" >&2; exit 2; }
      # FOLDER is relative to the caller's folder.
      if [ "$1" = --profile ]; then profile=$2; else output=$(realpath -m "$2"); fi
      shift 2 ;;
    *) sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
cd "$(dirname "$0")/.."
# Relative to this folder, as cargo resolves it.
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
here=$(uname -m)
[ "$here" != aarch64 ] || here=arm64
version=$(python3 -B infra/pack.py version)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. tests/stack/environment.sh

# pack_functions ARCHITECTURE FOLDER [fast]: packs the functions in FOLDER with the template and its translation.
pack_functions() {
  environment infra/.work/release infra/release-requirements.txt
  infra/.work/release/bin/python -B infra/translate.py "$1" > "$work/translated.yaml"
  python3 -B infra/pack.py functions "$1" "$2" "$work/translated.yaml" "$output/hyperband-$version-$1.zip" "${@:3}"
}

if [ "$profile" = dev ]; then
  [ "${architectures[*]:-$here}" = "$here" ] || { echo "infra/release.sh: --profile dev is for $here only" >&2; exit 2; }
  output=${output:-$target/dist-dev}
  mkdir -p "$output"
  for function in $(python3 -B infra/pack.py names); do
    mkdir "$work/$function"
    strip -o "$work/$function/bootstrap" "$target/debug/$function"
  done
  pack_functions "$here" "$work" fast
else
  output=${output:-$target/dist}
  mkdir -p "$output"
  [ ${#architectures[@]} -gt 0 ] || architectures=(arm64 x86_64)
  for architecture in "${architectures[@]}"; do
    infra/build.sh "$architecture" --profile "$profile"
    tests/measure_functions.py --sizes
    pack_functions "$architecture" target/lambda
  done
  if $program; then
    # An existing program may be out of date.
    cargo build --locked --release --package cli
    strip -o "$work/hyperband" "$target/release/hyperband"
    system=$(uname -s | tr '[:upper:]' '[:lower:]')
    python3 -B infra/pack.py program "$here" "$work/hyperband" "$output/hyperband-$version-program-$system-$here.zip"
  fi
fi
python3 -B infra/pack.py sums "$output"
cat "$output/SHA256SUMS"
