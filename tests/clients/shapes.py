"""Compares responses with the service model of botocore: no missing, unknown or null member, no unknown value."""

import json
import re

# The only member that the model lacks.
OURS = "Controller"
# Models of a server on this machine are folders, as in the local mode of the SageMaker SDK. The service model has S3 only.
MODELS = "ModelArtifacts.S3ModelArtifacts"


def watch(client, seen):
    """Checks each successful response of this client, and adds its operation to `seen`."""

    def check(operation_model, response_dict, **_):
        if response_dict["status_code"] != 200:
            return
        seen.add(operation_model.name)
        body = json.loads(response_dict["body"] or b"{}")
        shape = operation_model.output_shape
        problems = list(differences(shape, body, operation_model.name)) if shape else [f"{operation_model.name}: {body}"] * bool(body)
        if problems:
            raise AssertionError("; ".join(problems))

    client.meta.events.register("before-parse.sagemaker", check)


def differences(shape, value, path):
    """Yields how `value` differs from `shape`."""
    kinds = {
        "structure": dict, "map": dict, "list": list, "string": str, "integer": int, "long": int, "float": (int, float),
        "double": (int, float), "boolean": bool, "timestamp": (int, float),
    }
    if not isinstance(value, kinds[shape.type_name]):
        yield f"{path} is {value!r}, not a {shape.type_name}"
    elif shape.type_name == "structure":
        for name in shape.required_members:
            if name not in value:
                yield f"{path} lacks {name}"
        for name, member in value.items():
            if name in shape.members:
                yield from differences(shape.members[name], member, f"{path}.{name}")
            elif name != OURS:
                yield f"{path} has the unknown member {name}"
    elif shape.type_name == "list":
        for member in value:
            yield from differences(shape.member, member, f"{path}[]")
    elif shape.type_name == "map":
        for member in value.values():
            yield from differences(shape.value, member, f"{path}{{}}")
    elif shape.type_name == "string":
        if shape.enum and value not in shape.enum:
            yield f"{path} is {value!r}, not one of {', '.join(shape.enum)}"
        pattern = shape.metadata.get("pattern", ".*")
        # Python has no classes of Unicode such as \\p{L}. The patterns of the model match lines.
        is_folder = path.endswith(MODELS) and value.startswith("file:///")
        if r"\p" not in pattern and not is_folder and not re.fullmatch(pattern, value, re.S):
            yield f"{path} is {value!r}, which does not match {pattern}"
