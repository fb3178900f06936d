"""A boto3 client of a stack of Hyperband, and the fields of `Controller` for clients that cannot send them.

    client = hyperband.client("https://abc123.execute-api.eu-west-1.amazonaws.com")
    session = sagemaker.Session(sagemaker_client=client)
    tuner = HyperparameterTuner(..., tags=hyperband.Controller(MaxCostUsd=20).tags())

`hyperband serve` and `hyperband proxy` are endpoints too, without credentials. Only `client` needs boto3.
"""

from __future__ import annotations

import difflib
import importlib
import ipaddress
import json
import os
import re
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, TypedDict, Union
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from typing_extensions import Literal, Unpack

__all__ = ["Controller", "Fields", "client"]

ENDPOINT_VARIABLE = "HYPERBAND_ENDPOINT"
EXAMPLE = "https://abc123.execute-api.eu-west-1.amazonaws.com"
# Limits of AWS.
MAX_TAG, MAX_VARIABLE = 256, 512
TAG_VALUE = re.compile(r"[\w .:/=+\-@]*")


class Fields(TypedDict, total=False):
    """The fields of `Controller`. docs/REQUEST.md describes them; the endpoint validates their values."""

    MaxCostUsd: float
    InstancePricesUsdPerHour: Mapping[str, float]
    ReductionFactor: int
    Sampler: Literal["Model", "Sobol", "Random"]
    InitialConfigurations: List[Mapping[str, Union[str, float]]]
    RungExecution: Literal["Auto", "Stop", "Promote"]
    Scheduling: Literal["Asynchronous", "Synchronous"]
    ResourceHyperParameter: str
    EpochPattern: str
    EpochBase: int
    EpochNumbering: Literal["Absolute", "PerAttempt"]
    MetricHost: str
    MaxInstances: int
    MaxInterruptions: int
    MaxCapacityWaitSeconds: int
    SpotFallback: Literal["None", "OnDemand"]
    Refit: Literal["None", "Best"]
    NoObjectiveSeconds: int
    MaxDivergedEpochs: int
    StartupAllowanceSeconds: int
    UploadAllowanceSeconds: int


class Controller:
    """Fields of `Controller`, as tags or as environment variables. Training jobs get neither."""

    def __init__(self, **fields: Unpack[Fields]) -> None:
        """Raises `TypeError` for a name that is no field, and `ValueError` for a number that JSON lacks (NaN, infinity)."""
        self._texts: Dict[str, str] = {}
        self._structures: Dict[str, str] = {}
        for name, value in fields.items():
            if name not in Fields.__annotations__:
                raise TypeError(f"unknown field {name!r} of Controller{_suggestion(name)}")
            if value is None:
                # Without the field a tuning could run without a cap.
                raise ValueError(f"invalid {name} None: expected a value; leave the field out if it has none")
            if isinstance(value, str):
                self._texts[name] = value
                continue
            try:
                encoded = json.dumps(value, allow_nan=False, separators=(",", ":"))
            except (TypeError, ValueError) as error:
                raise type(error)(f"invalid {name} {value!r}: expected a value that JSON can hold ({error})") from None
            is_structure = encoded[0] in "[{"
            (self._structures if is_structure else self._texts)[name] = encoded

    def __repr__(self) -> str:
        return f"Controller({', '.join(f'{name}={value}' for name, value in {**self._texts, **self._structures}.items())})"

    def tags(self) -> List[Dict[str, str]]:
        """Returns the fields as tags for boto3 and the SageMaker SDKs. Raises `ValueError` for a value that a tag cannot hold."""
        for name, value in self._structures.items():
            raise ValueError(_no_tag(name, value, "a tag holds a text or a number"))
        for name, value in self._texts.items():
            if len(value) > MAX_TAG or not TAG_VALUE.fullmatch(value):
                raise ValueError(_no_tag(name, value, f"a tag holds at most {MAX_TAG} letters, digits, spaces and _.:/=+-@"))
        return [{"Key": f"hyperband:{name}", "Value": value} for name, value in self._texts.items()]

    def environment(self) -> Dict[str, str]:
        """Returns all fields as environment variables for the training job. Raises `ValueError` for a value that is too long."""
        # An unquoted text is the text itself. One that begins with a quote would be read as JSON.
        texts = {name: json.dumps(value) if value.startswith('"') else value for name, value in self._texts.items()}
        for name, value in {**texts, **self._structures}.items():
            if len(value) > MAX_VARIABLE:
                reason = f"its JSON has {len(value)} characters, but an environment variable holds at most {MAX_VARIABLE}"
                raise ValueError(f"cannot send {name}: {reason}; send a JSON request with `hyperband submit` instead")
        return {f"HYPERBAND_{name}": value for name, value in {**texts, **self._structures}.items()}


def client(endpoint: Optional[str] = None, region: Optional[str] = None, session: Any = None) -> Any:
    """Returns a boto3 client of SageMaker that sends its requests to a stack, `hyperband serve` or `hyperband proxy`.

    `endpoint` is the stack's output ApiUrl, by default $HYPERBAND_ENDPOINT. `region` is by default that of the endpoint's host, else
    that of the session. `session` is a `boto3.Session`, by default a new one. A loopback endpoint needs no credentials, and gets none.
    """
    endpoint = endpoint or os.environ.get(ENDPOINT_VARIABLE)
    if not endpoint:
        raise ValueError(f"missing endpoint: pass the stack's output ApiUrl or set {ENDPOINT_VARIABLE} to it")
    host = _host(endpoint)
    try:
        boto3 = importlib.import_module("boto3")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("hyperband.client requires boto3: install it with `pip install boto3`") from error
    session = session or boto3.Session()
    region = region or _region(host) or session.region_name
    credentials = {}
    if _is_loopback(host):
        region = region or "us-east-1"
        credentials = {"aws_access_key_id": "local", "aws_secret_access_key": "local", "aws_session_token": None}
    if not region:
        raise ValueError(f"missing Region: the host {host} has none; pass `region` or set AWS_DEFAULT_REGION")
    made = session.client("sagemaker", endpoint_url=endpoint, region_name=region, **credentials)
    made.meta.events.register("before-call.sagemaker", _sign_for_execute_api)
    return made


def _sign_for_execute_api(context: Dict[str, Any], **_: Any) -> None:
    context.setdefault("signing", {})["signing_name"] = "execute-api"


def _host(endpoint: str) -> str:
    """Returns the host of a valid endpoint. Requests have signatures and private data, so they use TLS, except to this machine."""
    if endpoint.startswith("lambda:"):
        raise ValueError("invalid endpoint: a function serves no SageMaker client; pass the stack's output ApiUrl")
    try:
        parts = urlsplit(endpoint)
        host = parts.hostname or ""
    except ValueError:
        parts, host = urlsplit(""), ""
    if parts.scheme not in ("http", "https") or not host:
        raise ValueError(f"invalid endpoint {endpoint!r}: expected https://HOST, for example {EXAMPLE}")
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError("invalid endpoint: expected a URL without a user, a query or a fragment")
    if parts.scheme == "http" and not _is_loopback(host):
        raise ValueError(f"http:// is only for this machine (localhost, 127.0.0.1): requests to {host} must go over https://")
    return host


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _region(host: str) -> Optional[str]:
    """Returns the Region in `<id>.execute-api.<region>.amazonaws.com`."""
    found = re.search(r"(?:^|\.)execute-api\.([^.]+)\.(?:.*\.)?amazonaws(?:\.|$)", host)
    return found and found[1]


def _suggestion(name: str) -> str:
    known = {field.lower(): field for field in Fields.__annotations__}
    near = difflib.get_close_matches(name.lower(), known, 1, 0.5)
    return f": did you mean {known[near[0]]!r}?" if near else f": expected one of {', '.join(known.values())}"


def _no_tag(name: str, value: str, reason: str) -> str:
    return f"cannot send {name} {value!r} as a tag: {reason}; pass environment() as the environment of the training job instead"
