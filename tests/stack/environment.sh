#!/usr/bin/env bash
# To be sourced: makes Python environments from lists of requirements, each once.

# environment FOLDER REQUIREMENTS: lists may ask for different versions of one package, so each has an environment of its own.
environment() {
  if ! cmp -s "$2" "$1/installed.txt"; then
    rm -rf "$1"
    python3 -m venv "$1"
    "$1/bin/pip" install --quiet --disable-pip-version-check -r "$2"
    cp "$2" "$1/installed.txt"
  fi
}
