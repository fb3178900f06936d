"""Tests the merge of overlays into the template, and what `deploy.sh` does with it. Programs in its place stand for SAM and AWS.

`infra/check.sh` runs this file, and checks every merged template. tests/stack-template compares the merged templates with the code.
Needs only Python and Bash.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "infra"))
import overlay  # noqa: E402

TEMPLATE = """\
# Head.
Parameters:
  Size:
    Type: String
    Default: ""

Resources:
  # Why it exists.
  First:
    Type: A::B
    Properties:
      # Why it is small.
      Size: small
      Flow: { a: 1 }
      List:
        # Why one.
        - !Ref One
      Items:
        - Sid: One
          Action:
            - a
          # Why all.
          Resource: "*"
  Second:
    Type: A::B
    Properties:
      "Null": x  # inline
      Text: >-
        two
        lines

# Foot.
Outputs:
  Name:
    Description: A name.
    Value: !Ref First
"""


def merge(text, template=TEMPLATE):
    merged = overlay.Template(template, "template.yaml")
    merged.merge(text, "overlays/test.yaml")
    return merged.dump()


class Merge(unittest.TestCase):
    def check(self, change, *replacements):
        """Checks that the overlay changes exactly these parts of the template."""
        wanted = TEMPLATE
        for old, new in replacements:
            self.assertEqual(wanted.count(old), 1, old)
            wanted = wanted.replace(old, new)
        self.assertEqual(merge(change), wanted)

    def test_a_value_is_replaced_and_keeps_its_comment(self):
        self.check("Resources:\n  First:\n    Properties:\n      Size: big\n", ("Size: small", "Size: big"))
        self.check("Resources:\n  First:\n    Properties:\n      # Why it is big.\n      Size: big\n",
                   ("# Why it is small.\n      Size: small", "# Why it is big.\n      Size: big"))
        self.check("Resources:\n  Second:\n    Properties:\n      Text: |\n        one\n",
                   ("Text: >-\n        two\n        lines\n", "Text: |\n        one\n"))

    def test_a_new_key_is_added_at_the_end_of_its_map(self):
        self.check("Resources:\n  First:\n    Properties:\n      Key: { b: 2 }\n",
                   ('          Resource: "*"\n', '          Resource: "*"\n      Key: { b: 2 }\n'))
        self.check("Resources:\n  # Why.\n  Third:\n    Type: C\nParameters:\n  Name:\n    Type: String\n",
                   ("        lines\n", "        lines\n\n  # Why.\n  Third:\n    Type: C\n"),
                   ('    Default: ""\n', '    Default: ""\n  Name:\n    Type: String\n'))

    def test_a_list_of_lines_is_appended(self):
        self.check("Resources:\n  First:\n    Properties:\n      List:\n        - !Ref Two\n",
                   ("        - !Ref One\n", "        - !Ref One\n        - !Ref Two\n"))

    def test_a_map_changes_the_only_item_of_a_list(self):
        start = "Resources:\n  First:\n    Properties:\n"
        self.check(start + "      Items:\n          Sid: Two\n          Action:\n            - b\n",
                   ("- Sid: One", "- Sid: Two"), ("            - a\n", "            - a\n            - b\n"))
        self.check(start + "      Items:\n          Resource: !Ref One\n          Condition: { x: 1 }\n",
                   ('Resource: "*"\n', "Resource: !Ref One\n          Condition: { x: 1 }\n"))
        for change, template in [("      List:\n        a: 1\n", TEMPLATE),
                                 ("      Items:\n          Sid: Three\n", merge(start + "      Items:\n        - Sid: Two\n"))]:
            with self.assertRaisesRegex(SystemExit, "is not a list of one item"):
                merge(start + change, template)

    def test_null_removes_a_key_with_its_comment(self):
        self.check("Resources:\n  First: null\n", (TEMPLATE[TEMPLATE.index("  # Why it exists."):TEMPLATE.index("  Second:")], ""))
        self.check('Resources:\n  Second:\n    Properties:\n      "Null": null\n', ('      "Null": x  # inline\n', ""))

    def test_a_part_of_types_changes_each_resource_of_the_type_before_single_resources(self):
        self.check("Resources:\n  First:\n    Properties:\n      Key: null\nTypes:\n  A::B:\n    Properties:\n      Key: !Ref Size\n",
                   ("        lines\n", "        lines\n      Key: !Ref Size\n"))

    def test_an_optional_resource_is_changed_only_if_it_exists(self):
        self.check("Resources:\n  Third?:\n    Properties:\n      Size: big\n")
        self.check("Resources:\n  First?:\n    Properties:\n      Size: big\n", ("Size: small", "Size: big"))

    def test_an_unknown_target_is_an_error(self):
        for change, message in [
                ("Resources:\n  Third:\n    Properties:\n      Size: big\n", "Third does not exist"),
                ("Resources:\n  Third: null\n", "Third does not exist"),
                ("Resources:\n  First:\n    Properties:\n      Key: null\n", "Key does not exist"),
                ("Parameters:\n  Other:\n    Default: x\n", "Other does not exist"),
                ("Outputs:\n  Other:\n    Value: x\n", "Other does not exist"),
                ("Types:\n  C::D:\n    Properties:\n      Key: x\n", "C::D"),
                ("Rules:\n  Some:\n    Assertions: []\n", "section Rules"),
                ("Resources:\n  First:\n    Properties:\n      List: !Ref Two\n", "List is a map, a list or a value"),
                ("Resources:\n  First:\n    Properties:\n      Flow:\n        b: 2\n", "Flow is a map, a list or a value"),
                ("Resources:\n  First: [\n", "First is a map, a list or a value"),
                ("Resources:\n  - x\n", "section Resources"),
                ("Resources:\n  First\n", "cannot merge"),
        ]:
            with self.subTest(message), self.assertRaisesRegex(SystemExit, re.escape(message)):
                merge(change)


class Overlays(unittest.TestCase):
    def test_the_template_alone_is_unchanged(self):
        self.assertEqual(overlay.merged([]), (ROOT / "infra/template.yaml").read_text())

    def test_the_order_of_the_names_has_no_effect(self):
        names = list(overlay.known())
        self.assertEqual(overlay.merged(names), overlay.merged([*reversed(names), names[0]]))
        with self.assertRaisesRegex(SystemExit, "unknown overlay 'vcp': expected one of budget, "):
            overlay.merged(["vcp"])

    def test_each_overlay_adds_the_names_that_deployed_stacks_have(self):
        def names(text):
            sections = {entry.key: entry.entries for entry in overlay.Template(text, "merged").entries}
            return {f"{section} {entry.key}" for section in ["Parameters", "Resources", "Outputs"] for entry in sections[section]}

        plain = names(overlay.merged([]))
        # A stack with such a parameter upgrades by a deployment with the overlay, which must replace no resource.
        wanted = {
            "budget": {"Parameters BudgetUsd", "Resources Budget"},
            "dashboard": {"Resources Dashboard", "Outputs DashboardUrl"},
            "direct-calls": {"Resources InvokeFunction", "Resources InvokeLogs", "Resources InvokeRole", "Outputs InvokeFunctionName",
                             "Outputs InvokeFunctionArn"},
            "kms": {"Parameters KmsKeyArn", "Resources KeyPolicy"},
            "restored-table": {"Parameters TableName", "Parameters TableStreamArn"},
            "vpc": {"Parameters VpcSubnetIds", "Parameters VpcSecurityGroupIds", "Resources NetworkPolicy"},
        }
        self.assertEqual({name: names(overlay.merged([name])) - plain for name in overlay.known()}, wanted)
        self.assertEqual(plain - names(overlay.merged(overlay.known())), {"Resources Table"})

    def test_the_parameters_of_an_overlay_have_a_group(self):
        text = overlay.merged(overlay.known())
        groups = text[text.index("ParameterGroups:"):text.index("ParameterLabels:")]
        grouped = re.findall(r"\w+", " ".join(re.findall(r"Parameters: \[([^\]]*)\]", groups)))
        [parameters] = [entry for entry in overlay.Template(text, "merged").entries if entry.key == "Parameters"]
        self.assertEqual(sorted(grouped), sorted(entry.key for entry in parameters.entries))


AWS = """#!/usr/bin/env bash
echo "aws $*" >> "$CALLS"
[[ $* != *create-log-group* ]] || [ -z "${EXISTS-}" ] || { echo ResourceAlreadyExistsException >&2; exit 1; }
"""
SAM = """#!/usr/bin/env bash
echo "sam $*" >> "$CALLS"
"""


class Deploy(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hyperband-overlays-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.infra = self.folder / "infra"
        self.infra.mkdir()
        for name in ["template.yaml", "overlay.py", "deploy.sh", "samconfig.toml"]:
            shutil.copy(ROOT / "infra" / name, self.infra)
        shutil.copytree(ROOT / "infra/overlays", self.infra / "overlays")
        tools = self.folder / "bin"
        tools.mkdir()
        for name, text in {"aws": AWS, "sam": SAM}.items():
            (tools / name).write_text(text)
            (tools / name).chmod(0o755)

    def deploy(self, *arguments, code=0, exists=True):
        """Runs `deploy.sh`. Returns the calls of AWS and SAM, and the messages."""
        calls = self.folder / "calls"
        calls.write_text("")
        environment = os.environ | {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "CALLS": str(calls), "EXISTS": "1" if exists else ""}
        done = subprocess.run(
            ["bash", self.infra / "deploy.sh", *arguments], env=environment, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, code, done)
        return calls.read_text().splitlines(), done.stdout + done.stderr

    def configure(self, old, new):
        path = self.infra / "samconfig.toml"
        self.assertEqual(path.read_text().count(old), 1)
        path.write_text(path.read_text().replace(old, new))

    def test_a_deployment_without_overlays_uses_the_template(self):
        calls, _ = self.deploy("--no-progressbar", "--tags", "Team=ml")
        self.assertEqual(calls[-1], "sam deploy --no-progressbar --tags Team=ml")
        self.assertFalse((self.infra / "template-merged.yaml").exists())
        self.assertEqual(self.deploy()[0][-1], "sam deploy")

    def test_the_overlays_of_the_stage_and_of_the_arguments_are_merged(self):
        calls, _ = self.deploy("--config-env", "prod", "--overlay", "direct-calls", "--overlay=budget")
        self.assertEqual(calls[-1], "sam deploy --config-env prod --template-file template-merged.yaml")
        merged = (self.infra / "template-merged.yaml").read_text()
        self.assertEqual(merged, overlay.merged(["budget", "dashboard", "direct-calls"]))
        _, said = self.deploy("--overlay", "vcp", code=1)
        self.assertIn("unknown overlay 'vcp'", said)

    def test_a_parameter_without_its_overlay_is_refused(self):
        key = "KmsKeyArn=arn:aws:kms:eu-west-1:111122223333:key/1"
        calls, said = self.deploy("--parameter-overrides", "RequireVpc=true", key, code=2)
        self.assertEqual(calls, [])
        self.assertIn("unknown parameter KmsKeyArn", said)
        self.assertIn("add --overlay kms", said)
        self.deploy("--overlay", "kms", "--parameter-overrides", "RequireVpc=true", key)
        self.configure('  "LogRetentionDays=7",\n', f'  "LogRetentionDays=7",\n  "{key}",\n')
        self.assertIn("add --overlay kms", self.deploy(code=2)[1])
        self.configure("[prod.overlays]\n", '[default.overlays]\nnames = "kms"\n\n[prod.overlays]\n')
        self.deploy()
        self.configure(f'"{key}"', '"CreateDashboard=true"')
        self.assertIn("unknown parameter CreateDashboard", self.deploy(code=2)[1])

    def test_a_parameter_is_refused_in_every_form_that_sam_reads(self):
        for arguments in (["--parameter-overrides=KmsKeyArn=x"], ["--parameter-overrides", "ParameterKey=KmsKeyArn,ParameterValue=x"],
                          ["--parameter-overrides", "RequireVpc=true KmsKeyArn=x"]):
            self.assertIn("add --overlay kms", self.deploy(*arguments, code=2)[1], arguments)
        # Values and tags are no parameters.
        self.deploy("--parameter-overrides", "JobTags=team=ml,Stage=dev", "--tags", "Team=ml")
        self.configure('  "LogRetentionDays=7",\n', '  "LogRetentionDays=7", "KmsKeyArn=x",\n')
        self.assertIn("add --overlay kms", self.deploy(code=2)[1])

    def test_an_overlay_that_cannot_be_read_is_refused(self):
        for arguments in (["--overlay"], ["--overlay="]):
            self.assertIn("missing value of --overlay", self.deploy(*arguments, code=2)[1])
        head = "[default.overlays]"
        for section in (head + '\nnames = ["dashboard", "vpc"]', head + "\nnames = 'vpc'", head + '\nname = "vpc"',
                        '[ default.overlays ]\nnames = "vpc"', head + ' # here\nnames = "vpc"'):
            text = (ROOT / "infra/samconfig.toml").read_text()
            (self.infra / "samconfig.toml").write_text(f"{text}\n{section}\n")
            self.assertIn("invalid overlays in samconfig.toml", self.deploy(code=2)[1], section)

    def test_help_changes_nothing(self):
        calls, said = self.deploy("--help", exists=False)
        self.assertEqual(calls, ["sam deploy --help"])
        self.assertIn("--overlay kms", said)

    def test_only_a_new_training_log_group_gets_a_retention(self):
        group = "--log-group-name /aws/sagemaker/TrainingJobs"
        calls, _ = self.deploy("--region", "eu-west-1", exists=False)
        self.assertEqual(calls[:2], [f"aws logs create-log-group {group} --region eu-west-1",
                                     f"aws logs put-retention-policy {group} --retention-in-days 90 --region eu-west-1"])
        calls, _ = self.deploy()
        self.assertEqual(calls, [f"aws logs create-log-group {group}", "sam deploy"])


if __name__ == "__main__":
    unittest.main()
