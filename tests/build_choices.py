#!/usr/bin/env python3
"""Measures the effect of each build choice on one function.

Clones the last commit into a new folder for each choice, changes the clone, and builds it from scratch with cargo's
profile `lambda`, for the architecture of this machine. Prints the processor time of the build, the sizes of archive and
program, and the first response and memory as in `measure_functions.py`. Some choices need crates that Cargo.lock does
not have, and so the package registry. A choice takes about four minutes of processor time. Never changes the tree it
is started in.

    tests/build_choices.py                            measures all choices for the decider
    tests/build_choices.py --only deployed thin-lto   measures some choices; --help lists all
"""

import argparse
import json
import os
import platform
import re
import resource
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import measure_functions  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]


def edit(folder, path, pattern, replacement):
    """Replaces all matches of a pattern in a file. Fails if there is none, since the choice would change nothing."""
    file = folder / path
    text, count = re.subn(pattern, replacement, file.read_text(), flags=re.MULTILINE)
    if not count:
        sys.exit(f"{path} has no match for {pattern!r}: update this choice")
    file.write_text(text)


def default_features(folder):
    edit(folder, "Cargo.toml", r'^(aws-(?:config|sdk-\w+) = .*)default-features = false, ', r"\1")


def aws_lc(folder):
    edit(folder, "Cargo.toml", r'"rustls-ring"', '"rustls-aws-lc"')
    edit(folder, "shared/aws/src/lib.rs", r"CryptoMode::Ring", "CryptoMode::AwsLc")


def user_credentials(folder):
    edit(folder, "shared/aws/Cargo.toml", r"^aws-config\.workspace = true",
         'aws-config = { workspace = true, features = ["credentials-process", "sso"] }')


def allocator(crate, version, name):
    def change(folder):
        for function in measure_functions.FUNCTIONS:
            manifest, main = f"functions/{function}/Cargo.toml", f"functions/{function}/src/main.rs"
            edit(folder, manifest, r"^\[dependencies\]", f'[dependencies]\n{crate} = "{version}"')
            edit(folder, main, r"^#\[tokio::main",
                 f"#[global_allocator]\nstatic ALLOCATOR: {crate}::{name} = {crate}::{name};\n\n#[tokio::main")
    return change


# Maps a name to its label in the table, the settings of the profile, and the change of the sources.
CHOICES = {
    "deployed": ("as deployed", {}, None),
    "opt-s": ("opt-level s", {"OPT_LEVEL": "s"}, None),
    "opt-3": ("opt-level 3", {"OPT_LEVEL": "3"}, None),
    "thin-lto": ("thin LTO", {"LTO": "thin"}, None),
    "no-lto": ("no LTO", {"LTO": "off"}, None),
    "units": ("16 codegen units, thin LTO", {"LTO": "thin", "CODEGEN_UNITS": "16"}, None),
    "unwind": ("unwinding", {"PANIC": "unwind"}, None),
    "release": ("settings of profile release: opt-level 3, no LTO, 16 units, unwinding",
                {"OPT_LEVEL": "3", "LTO": "off", "CODEGEN_UNITS": "16", "PANIC": "unwind"}, None),
    "aws-lc": ("aws-lc", {}, aws_lc),
    "default-features": ("default features of the SDK and of aws-config", {}, default_features),
    "credentials": ("credential providers for users: SSO, processes", {}, user_credentials),
    "mimalloc": ("mimalloc", {}, allocator("mimalloc", "0.1", "MiMalloc")),
}


def build(choice, function, folder):
    """Builds a function and writes its archive. Returns the processor time in seconds."""
    _, variables, change = CHOICES[choice]
    tree = folder / choice
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(tree)], check=True)
    locked = ["--locked"]
    if change:
        change(tree)
        locked = []
    environment = os.environ | {f"CARGO_PROFILE_LAMBDA_{name}": value for name, value in variables.items()}
    environment["CARGO_TARGET_DIR"] = str(tree / "target")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = ["cargo", "build", "--quiet", *locked, "--profile", "lambda", "--package", function]
    subprocess.run(command, cwd=tree, env=environment, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    archive = folder / f"{choice}.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.write(tree / "target" / "lambda" / function, "bootstrap")
    subprocess.run(["rm", "-rf", str(tree)], check=True)
    return round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=CHOICES, default=list(CHOICES),
                        help="choices to measure (default: all)")
    parser.add_argument("--function", choices=measure_functions.FUNCTIONS, default="decider",
                        help="function to build (default: decider)")
    parser.add_argument("--starts", type=int, default=10, help="number of starts per build (default: 10)")
    parser.add_argument("--rie", type=Path, help="path of the Lambda runtime interface emulator")
    parser.add_argument("--archives", type=Path,
                        help="folder that keeps archives and figures; choices with figures there are not built again")
    options = parser.parse_args()
    rie = measure_functions.emulator_path(options.rie)
    with tempfile.TemporaryDirectory(prefix="hyperband-builds-") as name:
        folder = options.archives or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        archives, seconds = {}, {}
        for choice in options.only:
            figures = folder / f"{choice}.json"
            if not figures.exists():
                print(f"building {options.function}: {CHOICES[choice][0]}", file=sys.stderr, flush=True)
                figures.write_text(json.dumps({"seconds": build(choice, options.function, folder)}))
            archives[choice] = (options.function, folder / f"{choice}.zip")
            seconds[choice] = json.loads(figures.read_text())["seconds"]
        load = os.getloadavg()[0]
        measured = measure_functions.measure(rie, archives, options.starts)
        print(f"{options.starts} starts per build, {platform.machine()}, load {load:.1f} before", file=sys.stderr)
        print("| build | archive | program | first response, median (max) | resident, peak | processor time |")
        print("|---|---|---|---|---|---|")
        for choice in options.only:
            zip_mb, program_mb, _ = measure_functions.sizes(archives[choice][1])
            row = measured[choice]
            first = f"{row['firstMs']} ms ({row['firstMsMost']})"
            print(f"| {CHOICES[choice][0]} | {zip_mb:.2f} MB | {program_mb:.2f} MB | {first} | {row['peakMb']} MB "
                  f"| {seconds[choice]} s |")


if __name__ == "__main__":
    main()
