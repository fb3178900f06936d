"""The OpenAPI document of `hyperband serve`: the API keeps what it promises, and a generated client can use it."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.request
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
PROGRAM = os.environ["HYPERBAND_BIN"]
# Tokens come from an earlier page, and rules between fields refuse some requests that fit the schema.
BEYOND_THE_SCHEMA = "positive_data_acceptance"


class Document(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        command = [PROGRAM, "serve", "--listen", "127.0.0.1:0", "--data-dir", self.folder / "data", "--",
                   ROOT / "examples/hello/train.sh"]
        with (self.folder / "log").open("w") as log:
            self.server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=self.folder)
        self.addCleanup(self.server.communicate)
        self.addCleanup(self.server.terminate)
        line = self.server.stdout.readline()
        self.assertTrue(line.startswith("serving http://127.0.0.1:"), line + (self.folder / "log").read_text())
        self.url = line.split()[1]

    def run_tool(self, *command):
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout[-6000:] + done.stderr[-2000:])
        return done.stdout

    def test_every_operation_answers_as_the_document_says(self):
        self.run_tool("schemathesis", "run", f"{self.url}/openapi.json", "--seed", "1", "--max-examples", "30",
                      "--exclude-checks", BEYOND_THE_SCHEMA)

    def test_a_generated_typed_client_runs_a_tuning(self):
        with urllib.request.urlopen(f"{self.url}/openapi.json") as answer:
            document = self.folder / "openapi.json"
            document.write_bytes(answer.read())
        self.assertEqual(json.loads(document.read_text())["openapi"], "3.1.0")
        self.run_tool("openapi-python-client", "generate", "--path", document, "--output-path", self.folder / "generated",
                      "--meta", "none")
        (self.folder / "generated/py.typed").touch()
        shutil.copy(HERE / "use_client.py", self.folder)
        self.run_tool("mypy", "--strict", "--follow-imports=silent", "use_client.py")
        request = json.loads((ROOT / "examples/first.json").read_text())
        request["Controller"]["InstancePricesUsdPerHour"] = {"ml.m5.large": 0.115}
        (self.folder / "request.json").write_text(json.dumps(request))
        out = self.run_tool(sys.executable, "use_client.py", self.url, "request.json")
        job, value = out.split()
        described = json.loads(self.run_tool(PROGRAM, "describe", "first", "--endpoint", self.url, "--output", "json"))
        best = described["Controller"]["BestSeen"]
        self.assertEqual((int(job.split("-")[2]), float(value)), (best["Trial"], best["Value"]))


if __name__ == "__main__":
    unittest.main()
