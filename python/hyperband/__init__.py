"""Tunings on this machine, a boto3 client of a stack, and the fields of `Controller`. docs/CLIENTS.md has examples."""

from __future__ import annotations

import difflib
import importlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Literal, Mapping, NamedTuple, Optional, Sequence, Tuple, TypedDict, Union
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Best", "Controller", "Fields", "Result", "client", "tune"]

MAX_TAG, MAX_VARIABLE = 256, 512  # Limits of AWS.
LOOPBACK = re.compile(r"localhost|127(\.\d{1,3}){3}|::1")
TAG_VALUE = re.compile(r"[\w .:/=+\-@]*")
JSON_VALUE = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?|true|false|null")
SCALES = {(): "Linear", ("log",): "Logarithmic"}
RUN_STATUS = {"Completed": "FINISHED", "Stopped": "KILLED", "Failed": "FAILED"}
# (low, high), (low, high, "log"), a list of categories, or the same value for all trials.
Range = Union[Tuple[float, float], Tuple[float, float, str], List[Any], str, float]
File = Union[str, "os.PathLike[str]"]
Configurations = List[Mapping[str, Union[str, float]]]
# The fields of `Controller`. docs/REQUEST.md describes them; the endpoint validates their values.
Fields = TypedDict("Fields", {
    "MaxCostUsd": float, "ReductionFactor": int, "EpochPattern": str, "EpochBase": int, "MetricHost": str, "MaxInstances": int,
    "InstancePricesUsdPerHour": Mapping[str, float], "EpochNumbering": Literal["Absolute", "PerAttempt"], "Refit": Literal["None", "Best", "BestBuy"],
    "Prefer": Literal["Value", "Cost"], "Sampler": Literal["Model", "Sobol", "Random"], "InitialConfigurations": Configurations, "SpotFallback": Literal["None", "OnDemand"],
    "KnownResults": Configurations, "ResourceHyperParameter": str, "UploadAllowanceSeconds": int, "ValueTolerance": float, "ScaleWithInstances": List[str],
    "RungExecution": Literal["Auto", "Stop", "Promote"], "Scheduling": Literal["Asynchronous", "Synchronous"], "StartupAllowanceSeconds": int,
    "MaxInterruptions": int, "MaxCapacityWaitSeconds": int, "MaxDivergedEpochs": int, "NoObjectiveSeconds": int, "InstanceCounts": List[int]}, total=False)
# The trial with the best value at any epoch. `model` is the folder of the best model, if that is of this trial.
Best = NamedTuple("Best", [("hyperparameters", Dict[str, Any]), ("value", float), ("epoch", int), ("trial", int), ("epochs", int),
                           ("training_job", str), ("model", Optional[str])])


class Controller:
    """Fields of `Controller`, as tags or as environment variables. Training jobs get neither."""

    def __init__(self, **fields: Unpack[Fields]) -> None:
        """Raises `TypeError` for a name that is no field, and `ValueError` for a number that JSON lacks (NaN, infinity)."""
        self._values: Dict[str, str] = {}
        for name, value in fields.items():
            if name not in Fields.__annotations__:
                known = {field.lower(): field for field in Fields.__annotations__}
                near = [f"did you mean {known[field]!r}?" for field in difflib.get_close_matches(name.lower(), known, 1, 0.5)]
                near.append(f"expected one of {', '.join(known.values())}")
                raise TypeError(f"unknown field {name!r} of Controller: {near[0]}")
            if value is None:
                # Without the field a tuning could run without a cap.
                raise ValueError(f"invalid {name} None: expected a value; leave the field out if it has none")
            try:
                self._values[name] = value if isinstance(value, str) else json.dumps(value, allow_nan=False, separators=(",", ":"))
            except (TypeError, ValueError) as error:
                raise type(error)(f"invalid {name} {value!r}: expected a value that JSON can hold ({error})") from None

    def __repr__(self) -> str:
        return f"Controller({', '.join(f'{name}={value}' for name, value in self._values.items())})"

    def tags(self) -> List[Dict[str, str]]:
        """Returns the fields as tags for boto3 and the SageMaker SDKs. Raises `ValueError` for a value that a tag cannot hold."""
        for name, value in self._values.items():
            if len(value) > MAX_TAG or not TAG_VALUE.fullmatch(value):
                raise ValueError(f"cannot send {name} {value!r} as a tag: a tag holds at most {MAX_TAG} letters, digits, spaces and "
                                 "_.:/=+-@; pass environment() as the environment of the training job instead")
        return [{"Key": f"hyperband:{name}", "Value": value} for name, value in self._values.items()]

    def environment(self) -> Dict[str, str]:
        """Returns all fields as environment variables for the training job. Raises `ValueError` for a value that is too long."""
        # An unquoted text is the text itself. One that begins with a quote would be read as JSON.
        values = {name: json.dumps(value) if value.startswith('"') else value for name, value in self._values.items()}
        for name, value in values.items():
            if len(value) > MAX_VARIABLE:
                raise ValueError(f"cannot send {name}: its JSON has {len(value)} characters, but a variable holds at most "
                                 f"{MAX_VARIABLE}; send a JSON request with `hyperband submit` instead")
        return {f"HYPERBAND_{name}": value for name, value in values.items()}


def client(endpoint: Optional[str] = None, region: Optional[str] = None, session: Any = None) -> Any:
    """Returns a boto3 client of SageMaker that sends its requests to a stack, `hyperband serve` or `hyperband proxy`.

    `endpoint` is the stack's output ApiUrl, by default $HYPERBAND_ENDPOINT. By default, `region` is that of the endpoint's host,
    else of `session`. A loopback endpoint needs no credentials, and gets none.
    """
    if not (endpoint := endpoint or os.environ.get("HYPERBAND_ENDPOINT")):
        raise ValueError("missing endpoint: pass the stack's output ApiUrl or set HYPERBAND_ENDPOINT to it")
    host = _host(endpoint)
    session = session or _package("boto3", "client").Session()
    found, is_local = re.search(r"(?:^|\.)execute-api\.([^.]+)\.(?:.*\.)?amazonaws(?:\.|$)", host), LOOPBACK.fullmatch(host)
    region = region or (found[1] if found else session.region_name) or ("us-east-1" if is_local else None)
    if not region:
        raise ValueError(f"missing Region: the host {host} has none; pass `region` or set AWS_DEFAULT_REGION")
    local = {"aws_access_key_id": "local", "aws_secret_access_key": "local", "aws_session_token": None}
    made = session.client("sagemaker", endpoint_url=endpoint, region_name=region, **(local if is_local else {}))
    made.meta.events.register(
        "before-call.sagemaker", lambda context, **_: context.setdefault("signing", {}).update(signing_name="execute-api"))
    return made


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
        raise ValueError(f"invalid endpoint {endpoint!r}: expected https://HOST, the stack's output ApiUrl")
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError("invalid endpoint: expected a URL without a user, a query or a fragment")
    if parts.scheme == "http" and not LOOPBACK.fullmatch(host):
        raise ValueError(f"http:// is only for this machine (localhost, 127.0.0.1): requests to {host} must go over https://")
    return host


def _package(name: str, user: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"hyperband.{user} requires {name}: install it with `pip install {name}`") from error


class Result:
    """A tuning in a data directory, as of the creation of this object."""

    def __init__(self, name: str, data_dir: File = ".hyperband") -> None:
        self.name, self.data_dir = name, os.path.abspath(data_dir)
        self._place = [name, "--data-dir", self.data_dir]
        self.description: Dict[str, Any] = json.loads(_perform(["describe", *self._place, "--output", "json"]))
        self.status: str = self.description["HyperParameterTuningJobStatus"]
        lines = _perform(["export", *self._place, "--format", "jsonl"]).split("\n")
        self.trials: List[Dict[str, Any]] = [json.loads(line) for line in lines if line]
        self.best: Optional[Best] = None
        seen, model = (self.description["Controller"].get(key) or {} for key in ("BestSeen", "BestModel"))
        for trial in self.trials:
            texts, number = trial["HyperParameters"].items(), trial["Trial"]
            trial["HyperParameters"] = {key: json.loads(text) if JSON_VALUE.fullmatch(text) else text for key, text in texts}
            if number == seen.get("Trial"):
                self.best = Best(trial["HyperParameters"], seen["Value"], seen["Resource"], number, trial["Epochs"],
                                 trial["TrainingJobs"][-1], model.get("Location") if model.get("Trial") == number else None)

    def dataframe(self) -> Any:
        """Returns a `pandas.DataFrame` with a row for each trial: its hyperparameters and its other members, without curves."""
        frame = _package("pandas", "Result.dataframe").DataFrame([{**trial["HyperParameters"], **trial} for trial in self.trials])
        return frame.drop(columns=["HyperParameters", "Metrics"], errors="ignore")

    def report(self, path: Optional[File] = None) -> str:
        """Writes the report as one HTML file, by default `NAME.html`, and returns its path."""
        file = os.path.abspath(path or f"{self.name}.html")
        _perform(["report", *self._place, "--file", file])
        return file

    def log_to_mlflow(self, experiment: Optional[str] = None, tracking_uri: Optional[str] = None) -> str:
        """Logs a run with a nested run for each trial, and returns its ID. The default experiment has the name of the tuning."""
        mlflow, key = _package("mlflow", "Result.log_to_mlflow"), f"{self.name} {self.description['CreationTime']}"
        client, entities, parent = mlflow.MlflowClient(tracking_uri), mlflow.entities, ""
        found = client.get_experiment_by_name(experiment or self.name)
        home = found.experiment_id if found else client.create_experiment(experiment or self.name)
        runs = client.search_runs([home], f"tags.`hyperband.tuning` = '{key}'", max_results=50_000)
        known = {run.data.tags["hyperband.trial"]: run for run in runs}
        whole = {"Trial": "all", "Status": self.status, "BestValue": self.best and self.best.value, **self.description["Controller"]}
        for trial in [whole, *self.trials]:
            tags = {"hyperband.tuning": key, "hyperband.trial": str(trial["Trial"]), "hyperband.status": trial["Status"],
                    "mlflow.runName": f"{self.name} {trial['Trial']}", **({"mlflow.parentRunId": parent} if parent else {})}
            run = (known.get(tags["hyperband.trial"]) or client.create_run(home, tags=tags)).info
            # The end of a run is logged last, so an ended run is complete.
            if run.status == "RUNNING":
                points = [(name, 0, value) for name, value in trial.items() if isinstance(value, (int, float))]
                points += [(name, epoch, value) for name, curve in (trial.get("Metrics") or {}).items() for epoch, value in curve]
                metrics = [entities.Metric(name, value, run.start_time, step) for name, step, value in points if value is not None]
                params = [entities.Param(name, str(value)) for name, value in trial.get("HyperParameters", {}).items()]
                for first in range(0, len(metrics) or 1, 900):
                    client.log_batch(run.run_id, metrics[first:first + 900], params, [entities.RunTag(*tag) for tag in tags.items()])
                if trial["Status"] in RUN_STATUS:
                    client.set_terminated(run.run_id, RUN_STATUS[trial["Status"]])
            parent = parent or run.run_id
        return parent


def tune(command: Union[File, Sequence[str], Callable[..., Any]], space: Mapping[str, Range], metric: str, *,
         direction: str = "maximize", jobs: Optional[int] = 30, parallel: int = 4, max_resource: Optional[int] = None,
         strategy: Optional[str] = None, max_cost: Optional[float] = None, price_per_hour: Optional[float] = None,
         max_time: Optional[int] = None, max_job_time: Optional[int] = None, epoch_pattern: Optional[str] = None,
         metric_regex: Optional[str] = None, try_first: Sequence[Mapping[str, Any]] = (), request: Mapping[str, Any] = {},
         name: Optional[str] = None, data_dir: File = ".hyperband", fresh: bool = False, options: Sequence[str] = (),
         quiet: bool = False) -> Result:
    """Tunes `command` with `hyperband run`, see docs/LOCAL.md. After an interruption, the same call continues the tuning."""
    if __name__ == "__main__":
        raise RuntimeError("the file of the function calls hyperband.tune: put the call below `if __name__ == \"__main__\":`")
    label, words = _command(command)
    ranges: Dict[str, List[Any]] = {f"{kind}ParameterRanges": [] for kind in ("Integer", "Continuous", "Categorical")}
    for key, values in space.items():
        if isinstance(values, list):
            ranges["CategoricalParameterRanges"].append({"Name": key, "Values": [_text(value) for value in values]})
        elif isinstance(values, tuple):
            kind = "Integer" if isinstance(values[0], int) and isinstance(values[1], int) else "Continuous"
            low, high, scale = _text(values[0]), _text(values[1]), SCALES.get(values[2:], str(values[2:]))
            ranges[f"{kind}ParameterRanges"].append({"Name": key, "MinValue": low, "MaxValue": high, "ScalingType": scale})
    # The program reads null as a missing member.
    body: Dict[str, Any] = {
        "HyperParameterTuningJobConfig": {
            "HyperParameterTuningJobObjective": {"Type": direction.capitalize(), "MetricName": metric}, "ParameterRanges": ranges,
            "ResourceLimits": {"MaxNumberOfTrainingJobs": jobs, "MaxParallelTrainingJobs": parallel, "MaxRuntimeInSeconds": max_time},
            "StrategyConfig": max_resource and {"HyperbandStrategyConfig": {"MaxResource": max_resource}},
            "Strategy": strategy or ("Hyperband" if max_resource else "Bayesian")},
        "TrainingJobDefinition": {
            "StaticHyperParameters": {key: _text(value) for key, value in space.items() if not isinstance(value, (list, tuple))},
            "AlgorithmSpecification": {"MetricDefinitions": [{"Name": metric, "Regex": metric_regex}]},
            "StoppingCondition": {"MaxRuntimeInSeconds": max_job_time}},
        "Controller": {
            "MaxCostUsd": max_cost, "InstancePricesUsdPerHour": price_per_hour and {"ml.local.machine": price_per_hour},
            "EpochPattern": epoch_pattern, "InitialConfigurations": [{key: _text(one[key]) for key in one} for one in try_first]}}
    given = {**request, **{part: {**members, **request.get(part, {})} for part, members in body.items()}}
    name = name or re.sub("[^a-zA-Z0-9]+", "-", label)[:32].strip("-")
    line = ["run", "-", "--name", name, "--data-dir", os.path.abspath(data_dir), "--output", "json", *["--fresh"] * fresh]
    _perform([*line, *options, "--", *words], json.dumps(given), quiet)
    result = Result(name, data_dir)
    if result.status == "Failed":
        raise RuntimeError(f"the tuning {name} failed: {result.description.get('FailureReason')}")
    return result


def _command(command: Any) -> Tuple[str, List[str]]:
    """Returns a name and the words of a training program."""
    # Python buffers the output to a pipe, and a late value stops no trial early.
    python = [sys.executable, "-u"]
    if callable(command):
        name, module = getattr(command, "__name__", ""), sys.modules.get(getattr(command, "__module__", ""))
        file, spec = Path(getattr(module, "__file__", None) or ""), getattr(module, "__spec__", None)
        if getattr(module, name, None) is not command or not file.is_file():
            raise ValueError(f"invalid command {command!r}: expected a top-level function of a file, in a notebook one of %%writefile")
        dotted = spec.name if spec else file.stem
        root = file.absolute().parents[dotted.count(".") + (file.name == "__init__.py")]
        return name, [*python, __file__, str(root), dotted, name]
    words = shlex.split(command) if isinstance(command, str) else [*command] if isinstance(command, Sequence) else [os.fspath(command)]
    return Path(words[0]).stem, python + words if words[0].endswith(".py") else words


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=lambda number: number.item())


def _perform(words: Sequence[str], request: str = "", quiet: bool = True) -> str:
    """Runs the program and returns its standard output."""
    program = os.environ.get("HYPERBAND_BIN") or shutil.which("hyperband", path=os.path.dirname(sys.executable)) or "hyperband"
    if not shutil.which(program):
        raise FileNotFoundError(f"missing program {program}: install the wheel hyperband-controller, or set HYPERBAND_BIN")
    messages, stopped = [""], False
    # Terminals and notebooks send SIGINT to child processes too, and a second signal ends the program without its cleanup.
    hidden = [signal.SIGINT] if threading.current_thread() is threading.main_thread() else []
    with tempfile.TemporaryFile("w+") as given, tempfile.TemporaryFile("w+", encoding="utf-8") as printed:
        given.write(request)
        given.seek(0)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, hidden)
        try:
            with subprocess.Popen([program, *words], stdin=given, stdout=printed, stderr=subprocess.PIPE, encoding="utf-8",
                                  errors="replace", env={**os.environ, "PYTHONUNBUFFERED": "1"}) as process:
                while process.returncode is None:
                    try:
                        signal.pthread_sigmask(signal.SIG_SETMASK, before)
                        for line in process.stderr or ():
                            messages = [*messages[-99:], line]
                            sys.stderr.write("" if quiet else line)
                        process.wait()
                    except (KeyboardInterrupt, SystemExit):
                        stopped = True
                        process.terminate()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        code = 130 if stopped else process.returncode
        if code not in (0, 1):
            message = re.split("error: |interrupted: ", "".join(messages))[-1].strip()
            raise {2: ValueError, 130: KeyboardInterrupt}.get(code, RuntimeError)(message or f"{program} ended with {code}")
        printed.seek(0)
        return printed.read()


if __name__ == "__main__":
    # The training program of a function: FOLDER MODULE FUNCTION. The module may import this one.
    sys.path[0], dotted, function = sys.argv[1:]
    sys.modules["hyperband"] = sys.modules[__name__]
    hyperparameters = json.loads(os.environ["SM_HPS"])
    objective = hyperparameters.pop("_tuning_objective_metric")
    values = getattr(importlib.import_module(dotted), function)(**hyperparameters)
    for value in values if hasattr(values, "__next__") else [] if values is None else [values]:
        print(f"{objective}={float(value)!r}", flush=True)
