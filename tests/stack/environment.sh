#!/usr/bin/env bash
# Source this file. It creates Python environments from lists of requirements, each once.

# environment FOLDER REQUIREMENTS: each list has its own environment, because the lists pin different versions of a package.
environment() {
  mkdir -p "$(dirname "$1")"
  (
    # Scripts that use the same environment may run at the same time.
    flock 9
    if ! cmp -s "$2" "$1/installed.txt"; then
      rm -rf "$1"
      # uv needs a tenth of pip's time. Only the tests use it, since it ignores the index in a user's pip.conf.
      if [ -n "${UV:-}" ]; then
        python3 -m venv --without-pip "$1"
        "$UV" pip install --quiet --compile-bytecode --python "$1/bin/python" -r "$2"
      else
        python3 -m venv "$1"
        "$1/bin/pip" install --quiet --disable-pip-version-check -r "$2"
      fi
      cp "$2" "$1/installed.txt"
    fi
  ) 9> "$1.lock"
}
