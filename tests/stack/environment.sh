#!/usr/bin/env bash
# Source this file. It creates Python environments from lists of requirements, each once.

# Python compiles a module at its first import and keeps the result outside the source folders. Most modules of an environment
# are never imported.
PYTHONPYCACHEPREFIX=$(dirname "$(realpath "${BASH_SOURCE[0]}")")/.work/compiled
export PYTHONPYCACHEPREFIX
unset PYTHONDONTWRITEBYTECODE

# environment FOLDER REQUIREMENTS: each list has its own environment, because the lists pin different versions of a package.
environment() {
  mkdir -p "$(dirname "$1")"
  (
    # Scripts that use the same environment may run at the same time.
    flock 9
    if ! cmp -s "$2" "$1/installed.txt"; then
      rm -rf "$1" "$PYTHONPYCACHEPREFIX$(realpath -m "$1")"
      # uv needs a tenth of pip's time. Only the tests use it, since it ignores the index in a user's pip.conf.
      if [ -n "${UV:-}" ]; then
        python3 -m venv --without-pip "$1"
        "$UV" pip install --quiet --python "$1/bin/python" -r "$2"
      else
        python3 -m venv "$1"
        "$1/bin/pip" install --quiet --disable-pip-version-check --no-compile -r "$2"
      fi
      cp "$2" "$1/installed.txt"
    fi
  ) 9> "$1.lock"
}
