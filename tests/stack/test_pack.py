"""Tests the content of a release: licences and bills of everything built into it, settings, documents with valid links, the wheel.

Needs only cargo and Python. The packed functions are placeholders of one word.
"""

import io
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import tomllib
import unittest
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "infra"))
import pack  # noqa: E402
import sbom  # noqa: E402
import wheel  # noqa: E402

TARGET, PROGRAM = pack.TARGETS["arm64"], pack.PROGRAMS["arm64"]


def elf(machine, header):
    """Returns the start of a 64-bit ELF file with one program header of this kind."""
    head = b"\x7fELF\x02\x01".ljust(18, b"\0") + struct.pack("<H", machine)
    head = head.ljust(32, b"\0") + struct.pack("<Q", 64)
    return head.ljust(54, b"\0") + struct.pack("<HH", 56, 1) + bytes(6) + struct.pack("<I", header).ljust(56, b"\0")


def built(packages, target=TARGET):
    """Returns the registry packages that these are built from: name and version."""
    command = ["cargo", "tree", "--locked", "--edges", "normal", "--prefix", "none", "--target", target]
    command += [f"--package={package}" for package in packages]
    lines = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    found = {tuple(line.split()[:2]) for line in lines if line and str(ROOT) not in line}
    return {f"{name} {version.removeprefix('v')}" for name, version in found}


def anchor(heading):
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


class Pack(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory(prefix="hyperband-pack-")
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = Path(temporary.name)
        for function in pack.FUNCTIONS:
            (cls.folder / function).mkdir()
            (cls.folder / function / "bootstrap").write_text(function)
        (cls.folder / "hyperband").write_text("program")
        (cls.folder / "translated.yaml").write_text("translated")

    def functions(self):
        return self.unpacked(pack.functions("arm64", self.folder, self.folder / "translated.yaml", 1))

    def program(self):
        return self.unpacked(pack.program("arm64", self.folder / "hyperband", "top", 1))

    def unpacked(self, packed):
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            tops = {name.split("/", 1)[0] for name in archive.namelist()}
            self.assertEqual(len(tops), 1, tops)
            self.modes = {entry.filename.split("/", 1)[1]: entry.external_attr >> 16 for entry in archive.infolist()}
            return {name.split("/", 1)[1]: archive.read(name) for name in archive.namelist()}

    def test_each_archive_has_the_licences_of_everything_built_into_it(self):
        for files, packages, target in [(self.functions(), pack.FUNCTIONS, TARGET), (self.program(), ["cli"], PROGRAM)]:
            text = files["THIRD-PARTY.txt"].decode()
            listed = set(re.findall(r"^([\w-]+ \d[^ :]*): ", text, re.M))
            self.assertEqual(listed, built(packages, target))
            # Binary distributions must include the licence of the Sobol' sequence's direction numbers.
            self.assertIn("Copyright (c) 2008, Frances Y. Kuo and Stephen Joe", text)
            self.assertIn("Apache License", files["LICENSE"].decode())
            # The heading of each text names its packages. Every package has a text.
            headed = {name for line in re.findall(r"^={100}\n(.+)\n={100}$", text, re.M) for name in line.split(", ")}
            self.assertLessEqual(listed, headed)
            # Only the program is static, so it includes the C library.
            self.assertEqual("musl" in headed, target == PROGRAM)
            self.assertNotIn(str(ROOT), text)

    def test_each_archive_has_a_bill_of_everything_built_into_it(self):
        for files, packages, target, libraries in [
                (self.functions(), pack.FUNCTIONS, TARGET, {"rust-std"}),
                (self.program(), ["cli"], PROGRAM, {"rust-std", "musl"})]:
            bill = json.loads(files["sbom.cdx.json"])
            components = {one["bom-ref"]: one for one in bill["components"]}
            self.assertEqual(len(components), len(bill["components"]))
            named = {f"{one['name']} {one['version']}" for one in components.values() if "purl" in one}
            self.assertEqual(named, built(packages, target))
            self.assertEqual({ref for ref in components if not ref.startswith(("pkg:", "workspace/"))}, libraries)
            for ref, one in components.items():
                if "purl" in one:
                    self.assertRegex(one["hashes"][0]["content"], "^[0-9a-f]{64}$", ref)
                for word in re.split(r"[()\s]+|WITH \S+", one["licenses"][0]["expression"]):
                    self.assertRegex(word, r"^([A-Za-z0-9.-]+)?$", ref)
            # Everything hangs on the application.
            needs = {one["ref"]: one["dependsOn"] for one in bill["dependencies"]}
            reached, ahead = set(), [bill["metadata"]["component"]["bom-ref"]]
            while ahead:
                ref = ahead.pop()
                if ref not in reached:
                    reached.add(ref)
                    ahead += needs.get(ref, [])
            self.assertEqual(reached - set(components), {bill["metadata"]["component"]["bom-ref"]})
            self.assertLessEqual(set(components), reached)

    def test_an_expression_requires_every_licence(self):
        self.assertEqual(sbom.expression(["MIT/Apache-2.0", "ISC", "MIT OR Apache-2.0"]), "ISC AND (MIT OR Apache-2.0)")
        self.assertEqual(sbom.expression(["MIT / Zlib"]), "MIT OR Zlib")

    def test_a_wheel_declares_only_platforms_that_its_program_supports(self):
        static, dynamic = elf(183, 1), elf(183, wheel.LOADER)
        name, packed = wheel.wheel(static)
        stem = f"hyperband_controller-{pack.version()}"
        self.assertEqual(name, f"{stem}-py3-none-manylinux_2_17_aarch64.musllinux_1_1_aarch64.whl")
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            self.assertEqual(archive.read(f"{stem}.data/scripts/hyperband"), static)
            tags = re.findall(r"^Tag: (.*)$", archive.read(f"{stem}.dist-info/WHEEL").decode(), re.M)
            self.assertEqual(tags, ["py3-none-manylinux_2_17_aarch64", "py3-none-musllinux_1_1_aarch64"])
            text = archive.read(f"{stem}.dist-info/METADATA").decode()
            # The licences of the program and of everything built into it.
            [licence] = re.findall("^License-Expression: (.*)$", text, re.M)
            self.assertLessEqual({"Apache-2.0", "BSD-3-Clause", "MIT", "Unicode-3.0"}, set(licence.split(" AND ")))
            self.assertIn("never to an AWS\naccount", text)
            for name in ["__init__.py", "py.typed"]:
                self.assertEqual(archive.read(f"hyperband/{name}"), (ROOT / "python/hyperband" / name).read_bytes())
            # The command works without other packages, so that only extras require them.
            required = ['boto3>=1.28; extra == "boto3"', 'mlflow>=2.0; extra == "mlflow"', 'pandas>=1.0; extra == "pandas"']
            self.assertEqual(re.findall("^Requires-Dist: (.*)$", text, re.M), required)
        with self.assertRaisesRegex(SystemExit, "not static: build it for the target aarch64-unknown-linux-musl"):
            wheel.wheel(dynamic)
        name, _ = wheel.wheel(dynamic, fast=True)
        self.assertEqual(name, f"{stem}-py3-none-linux_aarch64.whl")
        for other in [b"#!/bin/sh\n", elf(3, 1)]:
            with self.assertRaisesRegex(SystemExit, "not an ELF file"):
                wheel.wheel(other)

    def test_the_program_is_executable(self):
        self.assertEqual(self.program()["hyperband"], b"program")
        self.assertEqual(self.modes["hyperband"] & 0o777, 0o755)

    def test_the_settings_have_the_architecture_of_the_functions(self):
        settings = tomllib.loads(self.functions()["infra/samconfig.toml"].decode())
        given = tomllib.loads((ROOT / "infra" / "samconfig.toml").read_text())
        for stage in ["default", "prod"]:
            parameters = settings[stage]["deploy"]["parameters"]["parameter_overrides"]
            ours = given[stage]["deploy"]["parameters"]["parameter_overrides"]
            self.assertEqual(parameters, ["Architecture=arm64", *ours])

    def test_the_documented_command_writes_the_role_into_every_stage(self):
        files = self.functions()
        texts = {"README.md": (ROOT / "README.md").read_text(), "the archive's README": files["README.md"].decode()}
        for name, text in texts.items():
            [command] = re.findall(r"^sed -i .*samconfig\.toml$", text, re.M)
            folder = self.folder / name.replace(" ", "-")
            (folder / "infra").mkdir(parents=True)
            (folder / "infra/samconfig.toml").write_bytes(files["infra/samconfig.toml"])
            where = folder if "infra/" in command else folder / "infra"
            # The command is idempotent.
            for _ in range(2):
                subprocess.run(["bash", "-euc", command], cwd=where, check=True)
                settings = tomllib.loads((folder / "infra/samconfig.toml").read_text())
                for stage in ["default", "prod"]:
                    parameters = settings[stage]["deploy"]["parameters"]["parameter_overrides"]
                    roles = [one for one in parameters if one.startswith("ExecutionRoleArns=")]
                    self.assertEqual(roles, ["ExecutionRoleArns=arn:aws:iam::111122223333:role/training"], name)

    def test_files_that_the_deploy_chapter_names_exist(self):
        chapter = (ROOT / "README.md").read_text().split("\n## Deploy\n", 1)[1].split("\n## ", 1)[0]
        commands = "\n".join(re.findall(r"```sh\n(.*?)```", chapter, re.S))
        named = re.findall(r"(?<![\w/.])@?((?:infra|examples)/[\w./-]+)", commands)
        self.assertLessEqual({"infra/build.sh", "infra/samconfig.toml"}, set(named))
        for path in named:
            self.assertTrue((ROOT / path).exists(), path)

    def test_signed_requests_differ_only_in_what_they_send(self):
        # The tests of the stack send the requests of DEPLOY.md.
        signed = [re.findall(r"^curl (?:.*\\\n)+.*$", (ROOT / "docs" / name).read_text(), re.M)
                  for name in ["DEPLOY.md", "STACK.md"]]
        headers = {command.split(' "$HYPERBAND_ENDPOINT')[0].removesuffix(" --data @examples/first-xgboost.json")
                   for commands in signed for command in commands}
        self.assertEqual([len(commands) for commands in signed], [2, 1])
        self.assertEqual(len(headers), 1, headers)

    def test_links_of_the_readme_and_the_map_are_valid(self):
        for name in ["README.md", "ARCHITECTURE.md"]:
            for link in re.findall(r"\]\(([^)\s]+)\)", (ROOT / name).read_text()):
                if link.startswith("https://"):
                    continue
                path, _, wanted = link.partition("#")
                target = ROOT / path
                self.assertTrue(target.exists(), f"{name} links {link}")
                headings = re.findall(r"^#+ (.+)$", target.read_text(), re.M) if wanted else []
                self.assertTrue(not wanted or wanted in map(anchor, headings), f"{name} links {link}")

    def test_the_readme_lists_every_file_and_no_other(self):
        files = self.functions()
        listed = re.findall(r"^\| `([^`]+)` \|", files["README.md"].decode(), re.M)
        named = {re.sub(r"<function>.*", "", name) for name in listed} | {"README.md"}
        for file in files:
            self.assertTrue(any(file == name or (name.endswith("/") and file.startswith(name)) for name in named), file)
        for name in named:
            self.assertTrue(any(file == name or file.startswith(name) for file in files), name)
        for name in ["first-xgboost", "first"]:
            self.assertEqual(json.loads(files[f"examples/{name}.json"])["HyperParameterTuningJobName"], name)

    def test_links_of_the_documents_are_valid(self):
        files = self.functions()
        seen = 0
        for file, content in files.items():
            for link in re.findall(r"\]\(([^)\s]+)\)", content.decode()) if file.endswith(".md") else []:
                if link.startswith("https://"):
                    continue
                path, _, wanted = link.partition("#")
                target = os.path.normpath(Path(file).parent / path) if path else file
                self.assertTrue(target in files, f"{file} links {link}, which the archive does not have")
                headings = re.findall(r"^#+ (.+)$", files[target].decode(), re.M)
                self.assertTrue(not wanted or wanted in map(anchor, headings), f"{file} links {link}")
                seen += 1
        self.assertGreater(seen, 10)

    def test_the_output_folder_is_relative_to_the_caller(self):
        away = self.folder / "away"
        away.mkdir()
        # A cargo target without functions: the script creates the folder, then fails at the first function.
        environment = os.environ | {"CARGO_TARGET_DIR": str(self.folder / "nothing")}
        release = [ROOT / "infra" / "release.sh", "--profile", "dev", "--output", "made"]
        done = subprocess.run(release, cwd=away, env=environment, capture_output=True, text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertTrue((away / "made").is_dir(), done.stderr)
        self.assertFalse((ROOT / "infra" / "made").exists())


if __name__ == "__main__":
    unittest.main()
