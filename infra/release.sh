#!/usr/bin/env bash
# Builds a release in target/dist, for arm64 and x86_64: hyperband-<version>-<arch>.zip has the functions and the templates. The
# command-line program is in hyperband-<version>-program-linux-<arch>.zip and in a Python wheel, as a static program for any Linux.
# SHA256SUMS has the checksums. Every archive has licences and a bill of materials. The functions deploy with the SAM CLI alone, or
# without it by the translated template. The version is that of Cargo.toml. The same programs and documents give the same bytes.
# Needs Rust by rustup. Installs the translator and the linker from PyPI into infra/.work.
#
#   infra/release.sh                     both architectures
#   infra/release.sh arm64               one architecture
#   infra/release.sh --no-program        without the command-line program
#   infra/release.sh --profile dev       builds nothing: packs the functions and the program of `cargo build`, for this machine
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
target_folder=$(realpath -m "${CARGO_TARGET_DIR:-target}")
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

# build_program ARCHITECTURE: builds the static program, also for the other architecture, and writes it to $work/hyperband.
build_program() {
  local target
  case $1 in
    arm64) target=aarch64-unknown-linux-musl ;;
    *) target=$1-unknown-linux-musl ;;
  esac
  environment infra/.work/build infra/build-requirements.txt
  if command -v rustup > /dev/null; then rustup target add "$target" 2> /dev/null; fi
  PATH="$PWD/infra/.work/build/bin:$PATH" CARGO_PROFILE_RELEASE_STRIP=symbols \
    cargo zigbuild --locked --release --package cli --target "$target"
  cp "$target_folder/$target/release/hyperband" "$work/hyperband"
}

# pack_program ARCHITECTURE [fast]: packs $work/hyperband as an archive and as a wheel. With `fast` it may be a dynamic program.
pack_program() {
  python3 -B infra/pack.py program "$1" "$work/hyperband" "$output/hyperband-$version-program-linux-$1.zip" "${@:2}"
  python3 -B infra/wheel.py "$work/hyperband" "$output" "${@:2}"
}

if [ "$profile" = dev ]; then
  [ "${architectures[*]:-$here}" = "$here" ] || { echo "infra/release.sh: --profile dev is for $here only" >&2; exit 2; }
  output=${output:-$target_folder/dist-dev}
  mkdir -p "$output"
  for function in $(python3 -B infra/pack.py names); do
    mkdir "$work/$function"
    strip -o "$work/$function/bootstrap" "$target_folder/debug/$function"
  done
  pack_functions "$here" "$work" fast
  if $program; then
    strip -o "$work/hyperband" "$target_folder/debug/hyperband"
    pack_program "$here" fast
  fi
else
  output=${output:-$target_folder/dist}
  mkdir -p "$output"
  [ ${#architectures[@]} -gt 0 ] || architectures=(arm64 x86_64)
  for architecture in "${architectures[@]}"; do
    infra/build.sh "$architecture" --profile "$profile"
    tests/measure_functions.py --sizes
    pack_functions "$architecture" target/lambda
    if $program; then
      build_program "$architecture"
      pack_program "$architecture"
    fi
  done
fi
python3 -B infra/pack.py sums "$output"
cat "$output/SHA256SUMS"
