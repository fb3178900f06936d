#!/usr/bin/env python3
"""The licences of all that is built into a program, as binary distributions have to carry them.

    third_party.py TARGET PACKAGE…     of these packages of the workspace, as they are built for TARGET, to standard output

Named are the packages that `cargo tree` has as normal dependencies, with the files of their sources. Called by `pack.py`. The same
`Cargo.lock` makes the same text. Assumes cargo and Python 3.11+. Must never build anything, nor leave a package out: one without any
licence file is told with what it says of itself.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILES = ("LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE")
HEAD = """\
What is built into the programs of this archive beside its own code, which is under Apache-2.0 (LICENSE): {count} packages, then
the texts of their licences. The Rust standard library is in them too, under MIT or Apache-2.0, © The Rust Project Developers.
"""
# For a package that names this licence and has no file of it.
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


def used(target, packages):
    """What cargo knows of each package that is built into these, in order of name and version."""
    tree = ["tree", "--locked", "--edges", "normal", "--prefix", "none", "--format", "{p}", "--target", target]
    lines = cargo(*tree, *(f"--package={package}" for package in packages)).splitlines()
    # A line is `name v1.2.3`, and more where it is no plain package of the registry.
    names = {(name, version.removeprefix("v")) for name, version, *_ in (line.split() for line in lines if line)}
    known = json.loads(cargo("metadata", "--locked", "--format-version", "1", "--filter-platform", target))["packages"]
    found = [package for package in known if (package["name"], package["version"]) in names]
    missing = names - {(package["name"], package["version"]) for package in found}
    if missing:
        sys.exit(f"cargo does not know {sorted(missing)}")
    return sorted(found, key=lambda package: (package["name"], package["version"]))


def texts(package):
    """The licences that lie beside a package's manifest; of our own ones those of others only."""
    folder = Path(package["manifest_path"]).parent
    named = [package["license_file"]] if package["license_file"] else []
    there = [path.name for path in folder.iterdir() if path.name.upper().startswith(FILES) and path.is_file()]
    found = [(folder / name).read_text(encoding="utf-8", errors="replace") for name in sorted({*named, *there})]
    if found or package["source"] is None:
        return found
    authors = ", ".join(package["authors"]) or f"the authors of {package['name']}"
    licence = package["license"] or sys.exit(f"{package['name']} has neither a licence nor a file of one")
    if "Apache-2.0" in licence:
        return [(ROOT / "LICENSE").read_text()]
    if "MIT" in licence:
        return [f"Copyright (c) {authors}\n\n{MIT}"]
    sys.exit(f"{package['name']} has no file of its licence, {licence}")


def third_party(target, packages):
    """The whole text: what is in the programs, then each licence once, with whose it is."""
    listed, whose = [], {}
    for package in used(target, packages):
        name = f"{package['name']} {package['version']}"
        found = texts(package)
        if package["source"] is not None:
            listed.append(f"{name}: {package['license'] or 'see its licence'}, {package['repository'] or package['name']}")
        for text in found:
            clean = "\n".join(line.rstrip() for line in text.strip().splitlines())
            whose.setdefault(clean, []).append(name)
    parts = [HEAD.format(count=len(listed)), "\n".join(listed) + "\n"]
    for text, names in whose.items():
        parts.append(f"{'=' * 100}\n{', '.join(dict.fromkeys(names))}\n{'=' * 100}\n\n{text}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.stdout.write(third_party(sys.argv[1], sys.argv[2:]))
