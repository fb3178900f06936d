#!/usr/bin/env python3
"""Prints the stack's template without SAM: plain CloudFormation, whose functions are in S3.

    translate.py ARCHITECTURE [--overlay NAME]...   for the archive of this architecture, with overlays merged into the template

StackSets with service-managed permissions, Terraform's `aws_cloudformation_stack` and CDK's `CfnInclude` need it. AWS's own translator
does the work, so the resources are those of `sam deploy`. Assumes the virtual environment of `release-requirements.txt`. The same
template gives the same text. Must never change a resource except its code.
"""

import argparse
import os
import sys

import yaml

from overlay import merged
from pack import TARGETS, version

# The translator asks boto3 for a Region. The template names none.
os.environ["AWS_DEFAULT_REGION"] = "us-east-1"
from samtranslator.parser.parser import Parser  # noqa: E402
from samtranslator.translator.translator import Translator  # noqa: E402
from samtranslator.yaml_helper import yaml_parse  # noqa: E402

FUNCTION = "AWS::Serverless::Function"
BUCKET = {
    "Type": "String",
    "Description": "Name of the bucket with the functions, without the Region at its end. Each Region has its own bucket, since Lambda reads "
                   "code only from its own Region. Example: example-hyperband stands for example-hyperband-eu-west-1 in eu-west-1.",
    "AllowedPattern": "[a-z0-9][a-z0-9.-]{1,46}",
    "ConstraintDescription": "expected the start of a bucket's name, for example example-hyperband",
}
HEAD = "# Generated from template.yaml, which explains every choice. The functions come from the bucket CodeBucketPrefix-REGION.\n"


class Dumper(yaml.SafeDumper):
    """Writes no aliases, and long texts as blocks."""

    def ignore_aliases(self, _data):
        return True


Dumper.add_representer(
    str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None))


def sources(template, architecture):
    """Adds the parameters of the functions' code, and replaces its local paths."""
    release = f"hyperband-{version()}-{architecture}"
    for resource in template["Resources"].values():
        if resource["Type"] == FUNCTION:
            # The version is in the key, because CloudFormation replaces code only if its key changes.
            key = resource["Properties"]["CodeUri"].replace("../target/lambda", release)
            resource["Properties"]["CodeUri"] = {"Bucket": {"Fn::Sub": "${CodeBucketPrefix}-${AWS::Region}"}, "Key": key}
    template["Parameters"] = {"CodeBucketPrefix": BUCKET, **template["Parameters"]}
    template["Parameters"]["Architecture"]["Default"] = architecture
    groups = template["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    groups.insert(0, {"Label": {"default": "Code"}, "Parameters": ["CodeBucketPrefix"]})


def translated(architecture, overlays):
    """Returns the translated template as text."""
    template = yaml_parse(merged(overlays))
    resources = set(template["Resources"])
    sources(template, architecture)
    plain = Translator({}, Parser()).translate(template, {})
    # The documents and the tests name resources, so the translator may add and rename none.
    if set(plain["Resources"]) != resources:
        sys.exit(f"the translation changed these resources: {sorted(set(plain['Resources']) ^ resources)}")
    text = HEAD + yaml.dump(plain, Dumper=Dumper, sort_keys=False, width=120, allow_unicode=True)
    for word in ("Transform:", "Globals:", "Fn::ForEach", "AWS::Serverless", "../target"):
        if word in text:
            sys.exit(f"the translated template still has {word!r}")
    return text


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("architecture", choices=TARGETS)
    parser.add_argument("--overlay", action="append", default=[], help="overlay to merge into the template; may be repeated")
    options = parser.parse_args()
    sys.stdout.write(translated(options.architecture, options.overlay))
