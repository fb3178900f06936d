"""Generates the tables of docs/PARAMETERS.md: every parameter of template.yaml and of the overlays.

    parameters.py           writes the tables
    parameters.py --check   fails if docs/PARAMETERS.md is out of date

The text above MARK is written by hand. Its table below NOTES may name only parameters that exist. check.sh calls this script, with
cfn-lint installed.
"""

import re
import sys
import textwrap
from pathlib import Path

import cfnlint.decode

FOLDER = Path(__file__).resolve().parent
RESULT = FOLDER.parent / "docs" / "PARAMETERS.md"
OVERLAYS = FOLDER / "overlays"
MARK = "<!-- infra/parameters.py generates the rest from infra/template.yaml and infra/overlays. -->\n"
NOTES = "## More about some parameters\n"
INTERFACE = "AWS::CloudFormation::Interface"
# Shorter lengths are clear from the description of the constraint.
LONG = 100


def read(path):
    """Returns a template or an overlay as a dictionary."""
    document, problems = cfnlint.decode.decode(str(path))
    if problems:
        raise SystemExit(f"{path} is unreadable: {problems}")
    return document


def groups(template):
    """Returns (title, names) of each group of parameters, in the order of CloudFormation's console."""
    found = template["Metadata"][INTERFACE]["ParameterGroups"]
    listed = [name for group in found for name in group["Parameters"]]
    names = list(template["Parameters"])
    if sorted(listed) != sorted(names):
        raise SystemExit(f"{INTERFACE} does not list each parameter once: {sorted({*listed} ^ {*names})}")
    return [(group["Label"]["default"], list(group["Parameters"])) for group in found]


def plain(text):
    """Returns text without line breaks and without characters that Markdown would interpret. Documents become links."""
    text = re.sub(r"([*|<>\\])", r"\\\1", " ".join(text.split()))
    return re.sub(r"docs/(\w+\.md)", r"[\1](\1)", text)


def default(parameter):
    value = parameter.get("Default")
    if value is None:
        return "required"
    return "empty" if value == "" else f"`{value}`"


def allowed(parameter):
    """Returns the allowed values, from the parameter's constraints."""
    if "AllowedValues" in parameter:
        return ", ".join(f"`{value}`" for value in parameter["AllowedValues"])
    least, most = parameter.get("MinValue"), parameter.get("MaxValue")
    if least is not None:
        return f"at least {least}" if most is None else f"{least} to {most}"
    text = plain(parameter.get("ConstraintDescription", "")).removeprefix("expected ")
    length = parameter.get("MaxLength")
    if length is not None and length >= LONG and str(length) not in text:
        text += f"{', ' if text else ''}at most {length} characters"
    return text or "any"


def table(parameters, names):
    """Returns a table of these parameters."""
    rows = ["| parameter | default | allowed values | effect |", "|---|---|---|---|"]
    for name in names:
        parameter = parameters[name]
        rows.append(f"| `{name}` | {default(parameter)} | {allowed(parameter)} | {plain(parameter['Description'])} |")
    return "\n".join(rows) + "\n"


def overlays():
    """Returns (name, purpose, document) of each overlay, by name. The purpose is the file's first line, as overlay.py prints it."""
    return [(path.stem, path.read_text().splitlines()[0].lstrip("# "), read(path)) for path in sorted(OVERLAYS.glob("*.yaml"))]


def generated(template, found):
    """Returns the text below MARK."""
    parts = [f"## {title}\n\n{table(template['Parameters'], names)}" for title, names in groups(template)]
    for name, purpose, overlay in found:
        parameters = overlay.get("Parameters") or {}
        # An overlay may repeat a parameter of the template, which has its row above.
        own = [parameter for parameter in parameters if parameter not in template["Parameters"]]
        text = [textwrap.fill(plain(purpose), 120, break_on_hyphens=False) + "\n"]
        text.append(table(parameters, own) if own else "This overlay has no parameters.\n")
        parts.append(f"## Overlay `{name}`\n\n" + "\n".join(text))
    return "\n".join(parts)


def document():
    """Returns the text of the document as it must be."""
    above, mark, _ = RESULT.read_text().partition(MARK)
    if not mark:
        raise SystemExit(f"{RESULT} lacks the line {MARK!r}")
    template, found = read(FOLDER / "template.yaml"), overlays()
    known = {*template["Parameters"], *(name for _, _, overlay in found for name in overlay.get("Parameters") or {})}
    rows = re.findall(r"^\| (`.*?) \|", above.partition(NOTES)[2], re.M)
    unknown = {name for row in rows for name in re.findall(r"`(\w+)`", row)} - known
    if unknown:
        raise SystemExit(f"{RESULT} describes parameters that do not exist: {sorted(unknown)}")
    return above + mark + "\n" + generated(template, found)


def main(arguments):
    if arguments not in ([], ["--check"]):
        raise SystemExit(__doc__)
    text = document()
    if not arguments:
        RESULT.write_text(text)
    elif RESULT.read_text() != text:
        raise SystemExit(f"{RESULT} is out of date: run infra/.work/check/bin/python infra/parameters.py")
    else:
        print("docs/PARAMETERS.md has every parameter")


if __name__ == "__main__":
    main(sys.argv[1:])
