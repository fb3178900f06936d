#!/usr/bin/env python3
"""Prints a bill of materials (CycloneDX 1.6, JSON) of everything built into a program.

    sbom.py TARGET NAME PACKAGE…     for the program NAME of these packages of the workspace, built for TARGET

It has the packages of `third_party.py`, each with its licence as an SPDX expression, its checksum, and its dependencies. `pack.py`
calls it. The same `Cargo.lock` gives the same text, so it has no time. Needs cargo and Python 3.11+. Must never build anything or
omit a package.
"""

import json
import re
import sys
import tomllib
import uuid

from third_party import ROOT, edges, linked, used

# An old form of OR in manifests.
SLASH = re.compile(r"\s*/\s*")


def spdx(licence):
    """Returns the licence of a manifest as an SPDX expression."""
    return SLASH.sub(" OR ", licence)


def expression(licences):
    """Returns one SPDX expression that requires all of these."""
    parts = sorted({spdx(licence) for licence in licences})
    return " AND ".join(f"({part})" if " OR " in part and len(parts) > 1 else part for part in parts)


def reference(package):
    """Returns the ID of a package in the bill. A package of the workspace has no purl: a registry may have another of its name."""
    name = f"{package['name']}@{package['version']}"
    return f"pkg:cargo/{name}" if package["source"] else f"workspace/{name}"


def component(package, checksums):
    ref = reference(package)
    found = {"type": "library", "bom-ref": ref, "name": package["name"], "version": package["version"],
             "licenses": [{"expression": spdx(package["license"])}]}
    if package["source"]:
        digest = checksums[package["name"], package["version"]]
        found |= {"purl": ref, "hashes": [{"alg": "SHA-256", "content": digest}]}
    if package["repository"]:
        found["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return found


def sbom(target, name, packages):
    """Returns the whole text."""
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    checksums = {(package["name"], package["version"]): package.get("checksum") for package in lock}
    found = {(package["name"], package["version"]): package for package in used(target, tuple(packages))}
    refs = {key: reference(package) for key, package in found.items()}
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    # The versions of these depend on the machine that builds.
    libraries = [{"type": "library", "bom-ref": library, "name": library, "licenses": [{"expression": licence}]}
                 for library, licence in linked(target).items()]
    needs = {refs[key]: sorted(refs[other] for other in others) for key, others in edges(target, tuple(packages)).items()}
    roots = sorted([refs[name, version] for name in packages] + list(linked(target)))
    body = {
        "metadata": {
            "component": {"type": "application", "bom-ref": name, "name": name, "version": version,
                          "licenses": [{"expression": expression([found[name, version]["license"] for name in packages])}]},
            "properties": [{"name": "target", "value": target}],
        },
        "components": [component(package, checksums) for package in found.values()] + libraries,
        "dependencies": [{"ref": name, "dependsOn": roots}] + [{"ref": ref, "dependsOn": needs[ref]} for ref in sorted(needs)],
    }
    serial = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(body))
    head = {"bomFormat": "CycloneDX", "specVersion": "1.6", "serialNumber": f"urn:uuid:{serial}", "version": 1}
    return json.dumps(head | body, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    sys.stdout.write(sbom(sys.argv[1], sys.argv[2], sys.argv[3:]))
