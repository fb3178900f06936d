#!/usr/bin/env python3
"""Prints the licences of everything built into a program. Binary distributions must include them.

    third_party.py TARGET PACKAGE…     for these packages of the workspace, built for TARGET

The list has the normal dependencies of `cargo tree`, with the licence files of their sources. `pack.py` calls it. The same
`Cargo.lock` gives the same text. Needs cargo and Python 3.11+. Must never build anything or omit a package. A package without a
licence file is listed with the licence of its manifest.
"""

import functools
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILES = ("LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE")
HEAD = """\
The programs of this archive include {count} packages besides their own code, which is under Apache-2.0 (LICENSE). The list of
packages is followed by their licences. The programs also include the Rust standard library, under MIT or Apache-2.0,
© The Rust Project Developers.
"""
MUSL = "musl as a whole is licensed under the following licence (MIT).\n\nCopyright © 2005-2020 Rich Felker, et al.\n\n"
# For a package under this licence without a licence file.
MIT = """\
Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the
"Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish,
distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to
the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR
ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH
THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE."""


def cargo(*arguments):
    return subprocess.run(["cargo", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def linked(target):
    """Returns the libraries that the linker adds, with their licences: the standard library, and the C library of static programs."""
    return {"rust-std": "MIT OR Apache-2.0"} | ({"musl": "MIT"} if target.endswith("-musl") else {})


@functools.cache
def edges(target, packages):
    """Returns the packages built into `packages`, each with its direct dependencies: names and versions."""
    tree = ["tree", "--locked", "--edges", "normal", "--prefix", "depth", "--format", "{p}", "--target", target]
    lines = cargo(*tree, *(f"--package={package}" for package in packages)).splitlines()
    found, path = {}, []
    for line in filter(None, lines):
        # A line is `3name v1.2.3`, with more words if the package is not from the registry, or if its dependencies stand above.
        depth, name, version = re.match(r"(\d+)(\S+) v(\S+)", line).groups()
        path[int(depth):] = [(name, version)]
        found.setdefault(path[-1], set())
        if len(path) > 1:
            found[path[-2]].add(path[-1])
    return found


@functools.cache
def used(target, packages):
    """Returns cargo's metadata of each package built into `packages`, ordered by name and version."""
    names = set(edges(target, packages))
    known = json.loads(cargo("metadata", "--locked", "--format-version", "1", "--filter-platform", target))["packages"]
    found = [package for package in known if (package["name"], package["version"]) in names]
    missing = names - {(package["name"], package["version"]) for package in found}
    if missing:
        sys.exit(f"cargo metadata lacks the packages {sorted(missing)}")
    return sorted(found, key=lambda package: (package["name"], package["version"]))


def texts(package):
    """Returns the licence files beside a package's manifest. Our own packages have only those of other authors."""
    folder = Path(package["manifest_path"]).parent
    named = [package["license_file"]] if package["license_file"] else []
    there = [path.name for path in folder.iterdir() if path.name.upper().startswith(FILES) and path.is_file()]
    found = [(folder / name).read_text(encoding="utf-8", errors="replace") for name in sorted({*named, *there})]
    if found or package["source"] is None:
        return found
    authors = ", ".join(package["authors"]) or f"the authors of {package['name']}"
    licence = package["license"] or sys.exit(f"{package['name']} has neither a licence nor a licence file")
    if "Apache-2.0" in licence:
        return [(ROOT / "LICENSE").read_text()]
    if "MIT" in licence:
        return [f"Copyright (c) {authors}\n\n{MIT}"]
    sys.exit(f"{package['name']} has no licence file for {licence}")


def third_party(target, packages):
    """Returns the whole text: the list of packages, then each licence once, with its packages."""
    listed, whose = [], {}
    for package in used(target, tuple(packages)):
        name = f"{package['name']} {package['version']}"
        found = texts(package)
        if package["source"] is not None:
            listed.append(f"{name}: {package['license'] or 'see its licence'}, {package['repository'] or package['name']}")
        for text in found:
            clean = "\n".join(line.rstrip() for line in text.strip().splitlines())
            whose.setdefault(clean, []).append(name)
    if "musl" in linked(target):
        whose[MUSL + MIT] = ["musl"]
    parts = [HEAD.format(count=len(listed)), "\n".join(listed) + "\n"]
    for text, names in whose.items():
        parts.append(f"{'=' * 100}\n{', '.join(dict.fromkeys(names))}\n{'=' * 100}\n\n{text}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.stdout.write(third_party(sys.argv[1], sys.argv[2:]))
