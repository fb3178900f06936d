#!/usr/bin/env bash
# Deploys infra/template.yaml to an emulator of AWS's services and tests what is there. Needs Python 3.11+ and the functions
# as `cargo build` makes them; what it installs lies in tests/stack/.work.
set -euo pipefail
cd "$(dirname "$0")"

# One environment for each list: the two ask for different versions of one package.
environment() { # name, requirements
  local folder=.work/$1
  if ! cmp -s "$2" "$folder/installed.txt"; then
    rm -rf "$folder"
    python3 -m venv "$folder"
    "$folder/bin/pip" install --quiet --disable-pip-version-check -r "$2"
    cp "$2" "$folder/installed.txt"
  fi
}
environment emulator requirements.txt
environment sam requirements-sam.txt

functions=()
for function in ../../functions/*/; do
  name=$(basename "$function")
  [ "$name" = cli ] || functions+=(-p "$name")
done
cargo build --locked --quiet "${functions[@]}"

SAM=$PWD/.work/sam/bin/sam .work/emulator/bin/python -B test_stack.py "$@"
