#!/usr/bin/env python3
"""Packs the command-line program and the Python module as a wheel: `pip install` installs the command `hyperband` and the module.

    wheel.py FILE FOLDER [fast]     writes FOLDER/hyperband_controller-<version>-py3-none-<platform>.whl; `fast` compresses less and
                                    accepts a program that needs this machine's C library, for tests

The platform comes from the program itself. A static program fits every Linux, so the wheel says so. The same program gives the same
bytes. `release.sh` calls it. Needs cargo and Python 3.11+. Must never declare a platform that the program does not support.
"""

import base64
import hashlib
import struct
import sys
from pathlib import Path

from pack import PROGRAMS, ROOT, licences, pack, version
from sbom import expression
from third_party import linked, used

NAME = "hyperband-controller"
# Of an ELF file: machines, and the program header that names a loader.
MACHINES = {183: ("arm64", "aarch64"), 62: ("x86_64", "x86_64")}
LOADER = 3
# The module that `import hyperband` finds.
MODULE = ROOT / "python" / "hyperband"


def elf(program):
    """Returns the architecture's name here and in wheels, and whether the program is static. Exits if it is no program for Linux."""
    if program[:6] != b"\x7fELF\x02\x01" or (machine := struct.unpack_from("<H", program, 18)[0]) not in MACHINES:
        sys.exit("the program is not an ELF file for arm64 or x86_64")
    start, = struct.unpack_from("<Q", program, 32)
    size, count = struct.unpack_from("<HH", program, 54)
    kinds = [struct.unpack_from("<I", program, start + index * size)[0] for index in range(count)]
    return *MACHINES[machine], LOADER not in kinds


def platforms(machine, static):
    """Returns the platforms of a wheel that this program supports."""
    # A static program needs no C library: neither glibc (manylinux) nor musl (musllinux).
    return [f"manylinux_2_17_{machine}", f"musllinux_1_1_{machine}"] if static else [f"linux_{machine}"]


def metadata(licence):
    fields = [
        ("Metadata-Version", "2.4"), ("Name", NAME), ("Version", version()),
        ("Summary", "Command-line program and client of a controller that tunes the hyperparameters of SageMaker training jobs under a hard cap"),
        ("License-Expression", licence), ("License-File", "LICENSE"), ("License-File", "THIRD-PARTY.txt"),
        ("Classifier", "Development Status :: 3 - Alpha"), ("Classifier", "Environment :: Console"),
        ("Classifier", "Operating System :: POSIX :: Linux"), ("Classifier", "Typing :: Typed"), ("Requires-Python", ">=3.8"),
        # Extras, because the command and most of the module work without them.
        ("Provides-Extra", "boto3"), ("Requires-Dist", 'boto3>=1.28; extra == "boto3"'),
        ("Provides-Extra", "mlflow"), ("Requires-Dist", 'mlflow>=2.0; extra == "mlflow"'),
        ("Provides-Extra", "pandas"), ("Requires-Dist", 'pandas>=1.0; extra == "pandas"'),
        ("Description-Content-Type", "text/markdown"),
    ]
    text = (ROOT / "infra" / "wheel.md").read_text().replace("VERSION", version())
    return "".join(f"{name}: {value}\n" for name, value in fields) + f"\n{text}"


def wheel(program, *, fast=False):
    """Returns the name and the content of the wheel."""
    architecture, machine, static = elf(program)
    if not static and not fast:
        sys.exit(f"the program is not static: build it for the target {PROGRAMS[architecture]}")
    target, stem = PROGRAMS[architecture], f"{NAME.replace('-', '_')}-{version()}"
    tags = platforms(machine, static)
    texts = licences(target, "hyperband", ["cli"])
    licence = expression([package["license"] for package in used(target, ("cli",))] + list(linked(target).values()))
    info = f"{stem}.dist-info"
    files = {
        f"{stem}.data/scripts/hyperband": program,
        f"{info}/METADATA": metadata(licence).encode(),
        f"{info}/WHEEL": ("Wheel-Version: 1.0\nGenerator: hyperband\nRoot-Is-Purelib: false\n"
                          + "".join(f"Tag: py3-none-{tag}\n" for tag in tags)).encode(),
        f"{info}/licenses/LICENSE": texts["LICENSE"],
        f"{info}/licenses/THIRD-PARTY.txt": texts["THIRD-PARTY.txt"],
        f"{info}/sboms/hyperband.cdx.json": texts["sbom.cdx.json"],
    }
    files |= {f"hyperband/{name}": (MODULE / name).read_bytes() for name in ("__init__.py", "py.typed")}
    lines = [f"{path},sha256={digest(content)},{len(content)}\n" for path, content in sorted(files.items())]
    files[f"{info}/RECORD"] = "".join([*lines, f"{info}/RECORD,,\n"]).encode()
    packed = pack([(path, content, content is program) for path, content in files.items()], 1 if fast else 9)
    return f"{stem}-py3-none-{'.'.join(tags)}.whl", packed


def digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def main():
    match sys.argv[1:]:
        case [file, folder, *fast] if fast in ([], ["fast"]):
            name, packed = wheel(Path(file).read_bytes(), fast=bool(fast))
            (Path(folder) / name).write_bytes(packed)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
