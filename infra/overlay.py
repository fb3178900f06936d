#!/usr/bin/env python3
"""Prints the stack's template with overlays merged into it. `deploy.sh --overlay NAME` does this for a deployment.

    overlay.py NAME...    merges overlays/NAME.yaml of each name, in alphabetical order
    overlay.py            prints the overlays, each with its purpose

An overlay has the sections of a template, with the rules below. A changed value keeps its comment, unless the overlay has one.

- A map is merged key by key. A new key is added at its end.
- A list of lines (`- item`) is appended. A map changes the only item of a list. Every other value is replaced.
- `null` removes a key.
- Section `Types` has changes of every resource of a type. They are made before the changes of single resources.
- A resource whose name ends in `?` is changed only if it exists, since another overlay adds it.

A change of something that the template lacks is an error. So a new entry must be complete: a resource or a parameter has a `Type`,
a rule has `Assertions`, an output has a `Description`.

Merges lines and not values, so that comments and tags such as `!Ref` stay. Assumes the style of the template: two spaces for each
level, and maps of several lines without braces. Needs only Python 3.8+.
"""

import copy
import re
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
KEY = re.compile(r"""( *)("[^"]*"|'[^']*'|[^\s"'#-]\S*?):(?: +(.*))?$""")
COMPLETE = {"Resources": "Type", "Parameters": "Type", "Rules": "Assertions", "Outputs": "Description"}


class Entry:
    """A key with its value: the text on its line, and below it either a map (`entries`) or other lines (`lines`)."""

    def __init__(self, lead, indent, key, text):
        self.lead, self.indent, self.key, self.text = lead, indent, key, text
        self.entries, self.lines = None, []

    def is_list(self):
        return next((line for line in self.lines if not is_blank(line)), "").lstrip().startswith("- ")

    def get(self, key):
        return next((entry for entry in self.entries or [] if entry.key == key), None)

    def dump(self):
        yield from self.lead
        yield f"{self.indent}{self.key}:{' ' if self.text else ''}{self.text}"
        yield from self.lines
        for entry in self.entries or []:
            yield from entry.dump()


def is_blank(line):
    return not line.strip() or line.lstrip().startswith("#")


def depth(line):
    return len(line) - len(line.lstrip())


def parse(lines, name):
    """Returns the entries of a map, and the comments after the last of them."""
    entries, lead = [], []
    while lines:
        line, lines = lines[0], lines[1:]
        if is_blank(line):
            lead.append(line)
            continue
        found = KEY.match(line)
        if not found or (entries and found[1] != entries[0].indent):
            sys.exit(f"{name} has a line that this script cannot merge: {line!r}")
        entry, lead = Entry(lead, found[1], found[2], (found[3] or "").rstrip()), []
        below = next((number for number, other in enumerate(lines) if other.strip() and depth(other) <= len(entry.indent)), len(lines))
        while below and is_blank(lines[below - 1]) and (not lines[below - 1].strip() or depth(lines[below - 1]) <= len(entry.indent)):
            below -= 1
        body, lines = lines[:below], lines[below:]
        first = next((other for other in body if not is_blank(other)), "- ")
        if entry.text or first.lstrip().startswith("- "):
            entry.lines = body
        else:
            entry.entries, rest = parse(body, name)
            lead = rest
        entries.append(entry)
    return entries, lead


class Template:
    """The template, to which `merge` applies an overlay."""

    def __init__(self, text, name):
        self.entries, self.rest = parse(text.splitlines(), name)

    def dump(self):
        return "\n".join([line for entry in self.entries for line in entry.dump()] + self.rest) + "\n"

    def section(self, key):
        return next((entry for entry in self.entries if entry.key == key), None)

    def merge(self, text, name):
        overlay, _ = parse(text.splitlines(), name)
        for kind in [kind for section in overlay if section.key == "Types" for kind in section.entries]:
            resources = [one for one in self.section("Resources").entries if one.get("Type").text == kind.key]
            if not resources:
                sys.exit(f"{name} changes resources of type {kind.key}, and the template has none")
            for resource in resources:
                merge(resource, kind, f"{name}: {resource.key}")
        for section in overlay:
            base = self.section(section.key)
            if section.key != "Types" and (base is None or base.entries is None or section.entries is None):
                sys.exit(f"{name}: section {section.key} is not a map in both files")
            if section.key != "Types":
                merge(base, section, name)


def merge(base, change, path):
    """Merges the map `change` into the map `base`."""
    for part in copy.deepcopy(change.entries):
        key = part.key.rstrip("?")
        found, where = base.get(key), f"{path}: {key}"
        if found is None:
            if key == part.key:
                needed = None if base.indent else COMPLETE.get(base.key)
                if part.text == "null" or (needed and not part.get(needed)):
                    sys.exit(f"{where} does not exist in the template")
                if base.key == "Resources" and not (part.lead and not part.lead[0].strip()):
                    part.lead.insert(0, "")
                base.entries.append(part)
        elif part.text == "null":
            base.entries.remove(found)
        elif part.entries is not None and found.entries is not None:
            merge(found, part, where)
        elif part.is_list() and found.is_list():
            found.lines += part.lines
        elif part.entries is not None and found.is_list():
            merge_item(found, part, where)
        elif part.entries is not None or found.entries is not None or part.is_list() or found.is_list():
            sys.exit(f"{where} is a map, a list or a value, and something else in the template")
        else:
            found.lead = part.lead if any(line.strip() for line in part.lead) else found.lead
            found.text, found.lines = part.text, part.lines


def merge_item(base, change, path):
    """Merges the map `change` into the only item of the list `base`."""
    dash = base.lines[0].find("- ")
    if dash < 0 or any(depth(line) == dash and line.strip() for line in base.lines[1:]):
        sys.exit(f"{path} is a map, and in the template it is not a list of one item")
    item = Entry([], base.indent, base.key, "")
    item.entries, rest = parse([base.lines[0].replace("- ", "  ", 1), *base.lines[1:]], path)
    merge(item, change, path)
    lines = [line for entry in item.entries for line in entry.dump()] + rest
    base.lines = [lines[0][:dash] + "- " + lines[0][dash + 2:], *lines[1:]]


def known():
    """Returns the overlays: the path by name."""
    return {path.stem: path for path in sorted((FOLDER / "overlays").glob("*.yaml"))}


def merged(names):
    """Returns the template with these overlays as text."""
    template, overlays = Template((FOLDER / "template.yaml").read_text(), "template.yaml"), known()
    for name in sorted(set(names)):
        if name not in overlays:
            sys.exit(f"unknown overlay {name!r}: expected one of {', '.join(overlays)}")
        template.merge(overlays[name].read_text(), f"overlays/{name}.yaml")
    head = f"# Merged by overlay.py from template.yaml and overlays: {', '.join(sorted(set(names)))}. Change those files.\n"
    return (head if names else "") + template.dump()


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.stdout.write(merged(sys.argv[1:]))
    else:
        print(__doc__)
        for name, path in known().items():
            print(f"    {name:<16}{path.read_text().splitlines()[0].lstrip('# ')}")
