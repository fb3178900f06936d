#!/usr/bin/env python3
"""Measures what each choice of how the functions are built is worth: one function, built once a choice, nothing built before.

Each choice is the working tree's last commit in a folder of its own, changed by what the choice says, built by plain cargo with
the profile `lambda` for the architecture of this machine. Told of each: processor time of the whole build, size of archive and
program, first answer and memory as `measure_functions.py` has them. Needs the package registry where a choice needs crates that
Cargo.lock does not name; about four minutes of processor time a choice. Must never change the tree it is started in.

    tests/build_choices.py                            all choices, the decider
    tests/build_choices.py --only deployed thin-lto   some; --help names them
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


def edit(folder, path, pattern, put):
    """Replaces what matches, which must be there: a choice that changes nothing would measure nothing."""
    file = folder / path
    text, count = re.subn(pattern, put, file.read_text(), flags=re.MULTILINE)
    if not count:
        sys.exit(f"{path} has nothing like {pattern!r}; this choice is out of date")
    file.write_text(text)


def default_features(folder):
    edit(folder, "Cargo.toml", r'^(aws-(?:config|sdk-\w+) = .*)default-features = false, ', r"\1")


def aws_lc(folder):
    edit(folder, "Cargo.toml", r'"rustls-ring"', '"rustls-aws-lc"')
    edit(folder, "shared/aws/src/lib.rs", r"CryptoMode::Ring", "CryptoMode::AwsLc")


def people_s_credentials(folder):
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


# Name -> what it says in the table, variables of cargo, change of the sources.
CHOICES = {
    "deployed": ("as deployed", {}, None),
    "opt-s": ("opt-level s", {"OPT_LEVEL": "s"}, None),
    "opt-3": ("opt-level 3", {"OPT_LEVEL": "3"}, None),
    "thin-lto": ("thin LTO", {"LTO": "thin"}, None),
    "no-lto": ("no LTO", {"LTO": "off"}, None),
    "units": ("16 codegen units, thin LTO", {"LTO": "thin", "CODEGEN_UNITS": "16"}, None),
    "unwind": ("unwinding", {"PANIC": "unwind"}, None),
    "release": ("profile release's settings: opt-level 3, no LTO, 16 units, unwinding",
                {"OPT_LEVEL": "3", "LTO": "off", "CODEGEN_UNITS": "16", "PANIC": "unwind"}, None),
    "aws-lc": ("aws-lc", {}, aws_lc),
    "default-features": ("default features of the SDK and of aws-config", {}, default_features),
    "credentials": ("credential providers of people: SSO, processes", {}, people_s_credentials),
    "mimalloc": ("mimalloc", {}, allocator("mimalloc", "0.1", "MiMalloc")),
}


def built(choice, function, folder):
    """Builds it; its archive, and the seconds of processor time that took."""
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
    return archive, round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=CHOICES, default=list(CHOICES), help="which choices (all)")
    parser.add_argument("--function", choices=measure_functions.FUNCTIONS, default="decider", help="which function (decider)")
    parser.add_argument("--starts", type=int, default=10, help="of each build (10)")
    parser.add_argument("--rie", type=Path, help="the Lambda runtime interface emulator")
    parser.add_argument("--archives", type=Path, help="keep the archives and their figures here, and build none that is here already")
    asked = parser.parse_args()
    rie = measure_functions.emulator(asked.rie)
    with tempfile.TemporaryDirectory(prefix="hyperband-builds-") as name:
        folder = asked.archives or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        archives, seconds = {}, {}
        for choice in asked.only:
            figures = folder / f"{choice}.json"
            if not figures.exists():
                print(f"building {asked.function}: {CHOICES[choice][0]}", file=sys.stderr, flush=True)
                _, took = built(choice, asked.function, folder)
                figures.write_text(json.dumps({"seconds": took}))
            archives[choice] = (asked.function, folder / f"{choice}.zip")
            seconds[choice] = json.loads(figures.read_text())["seconds"]
        load = os.getloadavg()[0]
        found = measure_functions.measure(rie, archives, asked.starts)
        print(f"{asked.starts} starts each, {platform.machine()}, load {load:.1f} before", file=sys.stderr)
        print("| build | archive | program | first answer, median (most) | resident, peak | processor time |\n|---|---|---|---|---|---|")
        for choice in asked.only:
            zip_mb, program_mb, _ = measure_functions.sizes(archives[choice][1])
            row = found[choice]
            print(f"| {CHOICES[choice][0]} | {zip_mb:.2f} MB | {program_mb:.2f} MB | {row['firstMs']} ms ({row['firstMsMost']}) "
                  f"| {row['peakMb']} MB | {seconds[choice]} s |")


if __name__ == "__main__":
    main()
