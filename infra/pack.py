#!/usr/bin/env python3
"""Packs built functions and the template into a release's archive. The same content gives the same bytes.

`release.sh` calls it. Entries are sorted and have a fixed time. The functions' archives are created again, because the build's
archives have the build time. Every archive has the licences of its programs. Needs cargo and Python 3.11+. Must never build
anything.

    pack.py functions ARCHITECTURE FOLDER TRANSLATED OUTPUT [fast]
                                                  packs FOLDER/<function>/bootstrap.zip, or bootstrap there, with the template
                                                  and its translation; `fast` compresses less, for tests
    pack.py program ARCHITECTURE FILE OUTPUT [fast]
                                                  packs the command-line program
    pack.py sums FOLDER                           writes FOLDER/SHA256SUMS
    pack.py version | names                       prints the workspace's version or the names of the functions
"""

import hashlib
import io
import sys
import tomllib
import zipfile
from pathlib import Path

from sbom import sbom
from third_party import third_party

ROOT = Path(__file__).resolve().parents[1]
FUNCTIONS = ["api", "job-events", "job-logs", "decider", "actuator", "sweeper"]
TARGETS = {"arm64": "aarch64-unknown-linux-gnu", "x86_64": "x86_64-unknown-linux-gnu"}
# The command-line program is static, so that it runs on any Linux.
PROGRAMS = {"arm64": "aarch64-unknown-linux-musl", "x86_64": "x86_64-unknown-linux-musl"}
# The earliest time that a zip can hold.
TIME = (1980, 1, 1, 0, 0, 0)
UNIX, FILE = 3, 0o100000


def version():
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def pack(entries, level=9):
    """Returns a zip of entries (path, content, whether it is a program)."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, content, program in sorted(entries):
            entry = zipfile.ZipInfo(path, TIME)
            entry.create_system = UNIX
            entry.external_attr = (FILE | (0o755 if program else 0o644)) << 16
            # A zip does not compress further.
            method = zipfile.ZIP_STORED if path.endswith(".zip") else zipfile.ZIP_DEFLATED
            archive.writestr(entry, content, method, level)
    return packed.getvalue()


def built(folder, function):
    """Returns the program of a function."""
    program, archive = folder / function / "bootstrap", folder / function / "bootstrap.zip"
    if archive.exists():
        with zipfile.ZipFile(archive) as zipped:
            return zipped.read("bootstrap")
    if program.exists():
        return program.read_bytes()
    sys.exit(f"{archive} does not exist: run infra/build.sh first")


def licences(target, name, packages):
    """Returns the licences, the bill of materials and the changelog, which every archive has."""
    files = {name: (ROOT / name).read_bytes() for name in ["LICENSE", "CHANGELOG.md"]}
    texts = {"THIRD-PARTY.txt": third_party(target, packages), "sbom.cdx.json": sbom(target, name, packages)}
    return files | {file: text.encode() for file, text in texts.items()}


def settings(architecture):
    """Returns samconfig.toml with the functions' architecture in the parameters of each stage."""
    text = (ROOT / "infra" / "samconfig.toml").read_text()
    lists = "parameter_overrides = [\n"
    if lists not in text:
        sys.exit(f"infra/samconfig.toml has no line {lists.strip()!r}")
    return text.replace(lists, f'{lists}  "Architecture={architecture}",\n').encode()


def program(architecture, file, top, level):
    files = {"hyperband": file.read_bytes(), **licences(PROGRAMS[architecture], "hyperband", ["cli"])}
    return pack([(f"{top}/{path}", content, path == "hyperband") for path, content in files.items()], level)


def functions(architecture, folder, translated, level):
    names = {"VERSION": version(), "ARCHITECTURE": architecture}
    readme = (ROOT / "infra" / "archive.md").read_text()
    for name, value in names.items():
        readme = readme.replace(name, value)
    files = {"README.md": readme.encode(), **licences(TARGETS[architecture], "hyperband-functions", FUNCTIONS)}
    files |= {"infra/samconfig.toml": settings(architecture), "infra/template-translated.yaml": translated.read_bytes()}
    unchanged = ["infra/template.yaml", "infra/deploy.sh", "infra/deploy_policy.py", "infra/deploy-policy.json", "infra/key-policy.json",
                 "examples/first-xgboost.json", "examples/first.json", "examples/ci/github-actions.yml"]
    unchanged += ["infra/overlay.py", *(f"infra/overlays/{path.name}" for path in (ROOT / "infra" / "overlays").glob("*.yaml"))]
    files |= {name: (ROOT / name).read_bytes() for name in unchanged}
    files |= {f"docs/{path.name}": path.read_bytes() for path in (ROOT / "docs").glob("*.md")}
    for function in FUNCTIONS:
        files[f"target/lambda/{function}/bootstrap.zip"] = pack([("bootstrap", built(folder, function), True)], level)
    top = f"hyperband-{version()}-{architecture}"
    return pack([(f"{top}/{path}", content, path.endswith(".sh")) for path, content in files.items()])


def sums(folder):
    files = sorted([*folder.glob(f"hyperband-{version()}-*.zip"), *folder.glob(f"hyperband_controller-{version()}-*.whl")])
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
    (folder / "SHA256SUMS").write_text("".join(lines))


def main():
    match sys.argv[1:]:
        case ["functions", architecture, folder, translated, output, *fast] if fast in ([], ["fast"]):
            Path(output).write_bytes(functions(architecture, Path(folder), Path(translated), 1 if fast else 9))
        case ["program", architecture, file, output, *fast] if fast in ([], ["fast"]):
            Path(output).write_bytes(program(architecture, Path(file), Path(output).stem, 1 if fast else 9))
        case ["sums", folder]:
            sums(Path(folder))
        case ["version"]:
            print(version())
        case ["names"]:
            print(*FUNCTIONS)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
