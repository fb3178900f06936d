"""Random scenarios: what to request, how the training program lies, and what the driver does meanwhile.

Everything follows from the seed, so a failing seed can be run again. Only the timing of the machine differs.
"""

import random

# How a training program can behave. `honest` is drawn most often, so that tunings also have results.
LIES = [
    "nonfinite", "huge", "missing", "badformat", "duplicate", "restart", "backwards", "skip", "jump",
    "flood", "longline", "binary", "mimic", "crash", "signal", "silent", "noterm", "child", "session",
    "ckpt_delete", "ckpt_corrupt", "ckpt_huge", "ckpt_link", "badresume", "afterterm", "clock", "sleep",
    "nonewline", "closeout", "stderr", "buffered", "redraw", "ties", "decoys", "latechild", "values", "header",
]

PRICE = 3.6  # USD per hour, a tenth of a cent per second


def tuning(rng, name):
    """A request, with the facts about it that the checkers need."""
    strategy = rng.choices(["Hyperband", "Random", "Bayesian", "Grid"], [70, 12, 10, 8])[0]
    epochs = rng.randint(3, 9)
    jobs = rng.randint(4, 16)
    runtime = rng.randint(12, 30)
    goal = rng.choice(["Minimize", "Maximize"])
    controller = {}
    ranges = {
        "ContinuousParameterRanges": [{"Name": "x", "MinValue": "0.001", "MaxValue": "1", "ScalingType": rng.choice(["Linear", "Logarithmic"])}],
        "IntegerParameterRanges": [{"Name": "k", "MinValue": "1", "MaxValue": str(rng.choice([2, 5, 100]))}],
        "CategoricalParameterRanges": [{"Name": "c", "Values": ["a", "b", "ü, \"{c}\""]}],
    }
    config = {"Strategy": strategy, "HyperParameterTuningJobObjective": {"Type": goal, "MetricName": "loss"}}
    if strategy == "Grid":
        ranges = {"CategoricalParameterRanges": [
            {"Name": "x", "Values": [str(n / 10) for n in range(1, rng.randint(3, 5))]},
            {"Name": "c", "Values": ["a", "b"]}]}
    limits = {"MaxParallelTrainingJobs": rng.randint(1, 4)}
    if strategy != "Grid":
        limits["MaxNumberOfTrainingJobs"] = jobs
    if strategy != "Hyperband" and rng.random() < 0.5:
        config["TrainingJobEarlyStoppingType"] = "Auto"
    if rng.random() < 0.1:
        completion = {"TargetObjectiveMetricValue": 0.4 if goal == "Minimize" else 1.6}
        config["TuningJobCompletionCriteria"] = completion
    elif rng.random() < 0.1:
        config["TuningJobCompletionCriteria"] = {"BestObjectiveNotImproving": {"MaxNumberOfTrainingJobsNotImproving": 3}}
    if rng.random() < 0.5:
        config["RandomSeed"] = rng.randint(0, 1000)
    definition = {
        "AlgorithmSpecification": {"MetricDefinitions": [{"Name": "loss", "Regex": r"loss=([-+.\w]*\w)"}]},
        "StoppingCondition": {"MaxRuntimeInSeconds": runtime},
        "ResourceConfig": {"InstanceType": "ml.local.machine", "InstanceCount": 1, "VolumeSizeInGB": 1},
    }
    if rng.random() < 0.75:
        controller["EpochPattern"] = r"epoch=(\d+)"
    promote = False
    if strategy == "Hyperband":
        config["StrategyConfig"] = {"HyperbandStrategyConfig": {"MaxResource": epochs}}
        if rng.random() < 0.5:
            controller["ReductionFactor"] = rng.choice([2, 3])
        if rng.random() < 0.35:
            promote = True
            controller.update(RungExecution="Promote", ResourceHyperParameter="epochs")
            if rng.random() < 0.4:
                controller["Scheduling"] = "Synchronous"
        elif rng.random() < 0.5:
            controller["RungExecution"] = "Stop"
        if not promote and "ReductionFactor" not in controller and rng.random() < 0.3:
            controller["Prefer"] = rng.choice(["Cost", "Value"])
        if "Prefer" not in controller and rng.random() < 0.3:
            controller["Sampler"] = rng.choice(["Random", "Sobol"])
    if promote or rng.random() < 0.5:
        definition["CheckpointConfig"] = {}
    instances = 2 if rng.random() < 0.1 else 1
    definition["ResourceConfig"]["InstanceCount"] = instances
    if strategy != "Grid" and rng.random() < 0.15:
        controller["Refit"] = "Best"
    if rng.random() < 0.25:
        controller["MaxDivergedEpochs"] = rng.choice([0, 1, 2])
    if rng.random() < 0.4:
        controller["NoObjectiveSeconds"] = rng.randint(3, 8)
    if rng.random() < 0.1:
        definition["EnableManagedSpotTraining"] = True
        definition["CheckpointConfig"] = {}
        definition["StoppingCondition"]["MaxWaitTimeInSeconds"] = runtime + 30
    sizes = [1, 2] if strategy in ("Hyperband", "Random") and instances == 1 and rng.random() < 0.1 else None
    if sizes:
        controller["InstanceCounts"] = sizes
        instances = 2
    if strategy == "Hyperband" and not sizes and rng.random() < 0.1:
        controller["KnownResults"] = [{"x": 0.3, "k": 1, "c": "b", "loss": 0.5}, {"x": "0.9", "k": "2", "c": "a", "loss": 0.9}]
    if not definition.get("EnableManagedSpotTraining") and rng.random() < 0.07:
        definition["ResourceConfig"]["KeepAlivePeriodInSeconds"] = 60
    if rng.random() < 0.55:
        upload = rng.choice([0, 20, 120])
        wait = 30 if definition.get("EnableManagedSpotTraining") else 0
        kept = 120 if "KeepAlivePeriodInSeconds" in definition["ResourceConfig"] else 0
        job = PRICE / 3600 * instances * (60 + runtime + wait + 120 + upload + kept)
        least = 2 if controller.get("Refit") else 1
        controller.update(UploadAllowanceSeconds=upload, InstancePricesUsdPerHour={"ml.local.machine": PRICE},
                          MaxCostUsd=round(job * (least + rng.random() * 3) + 0.001, 6))
    elif rng.random() < 0.3:
        controller["InstancePricesUsdPerHour"] = {"ml.local.machine": PRICE}
    if strategy != "Grid" and rng.random() < 0.2:
        controller["InitialConfigurations"] = [{"x": 0.5, "c": "a"}, {"x": "0.25", "k": 1}]
    lies = rng.sample(LIES, rng.randint(0, 6))
    # Sleepers cost their whole time limit, so a tuning gets few of them.
    weights = ["honest"] * rng.randint(1, 8) + lies
    definition["StaticHyperParameters"] = {"fuzz": ";".join([
        str(rng.randint(0, 10**6)), str(epochs), str(rng.randint(20, 100)), goal, ",".join(weights)])}
    config.update(ResourceLimits=limits, ParameterRanges=ranges)
    return {
        "HyperParameterTuningJobName": name,
        "HyperParameterTuningJobConfig": config,
        "TrainingJobDefinition": definition,
        "Controller": controller,
    }


MALFORMED = [
    ("POST", "/tuning-jobs", b"{"), ("POST", "/tuning-jobs", b""), ("POST", "/tuning-jobs", b"[" * 100000),
    ("POST", "/tuning-jobs", b'{"HyperParameterTuningJobName":"' + b"a" * 300000 + b'"}'),
    ("POST", "/tuning-jobs", b"\xff\xfe\x00"), ("POST", "/tuning-jobs", b'{"HyperParameterTuningJobName":null}'),
    ("POST", "/tuning-jobs", b"x" * 20_000_000), ("PATCH", "/tuning-jobs/NAME", b'{"MaxCostUsd":-1}'),
    ("PATCH", "/tuning-jobs/NAME", b'{"MaxCostUsd":1e400}'), ("PATCH", "/tuning-jobs/NAME", b'{"MaxCostUsd":"NaN"}'),
    ("PATCH", "/tuning-jobs/NAME", b'{"MaxParallelTrainingJobs":0}'),
    ("PATCH", "/tuning-jobs/NAME", b'{"MaxParallelTrainingJobs":1001}'),
    ("PATCH", "/tuning-jobs/NAME", b'{"Surprise":1}'), ("PATCH", "/tuning-jobs/NAME", b'{"paused":"yes"}'),
    ("GET", "/tuning-jobs/NAME/training-jobs?MaxResults=0", None), ("GET", "/tuning-jobs?NextToken=%00%ff", None),
    ("GET", "/tuning-jobs/NAME/training-jobs?NextToken=abc", None), ("GET", "/tuning-jobs/%2e%2e%2fetc", None),
    ("GET", "/tuning-jobs/NAME/decisions?NextToken=-1", None), ("GET", "/tuning-jobs/" + "a" * 5000, None),
    ("GET", "/tuning-jobs?CreationTimeAfter=1e999", None), ("GET", "/tuning-jobs?MaxResults=-99999999999999999999", None),
    ("GET", "/tuning-jobs/NAME/training-jobs/NAME-0-0-1", None), ("DELETE", "/tuning-jobs/NAME", None),
    ("POST", "/tuning-jobs/NAME/training-jobs/none/stop", b""), ("GET", "/tuning-jobs?SortBy=Nothing", None),
    ("GET", "/tuning-jobs/NAME/rows?MaxResults=abc", None), ("FOO", "/tuning-jobs", b"{}"),
]

ACTIONS = ["stop", "stop_job", "again", "conflict", "raise_cap", "lower_cap", "parallel", "pause", "kill_job", "malformed", "delete"]


def scenario(seed):
    """The server's options, the tunings, and a list of (seconds, action, tuning) in the order of time."""
    rng = random.Random(seed)
    local = rng.random() < 0.25
    count = 1 if local else rng.randint(1, 3)
    tunings = [tuning(rng, f"t{seed}-{n}") for n in range(count)]
    events = [(rng.random() * 3, "submit", n) for n in range(count)]
    for _ in range(rng.randint(0, 7)):
        events.append((rng.random() * 12, rng.choice(ACTIONS), rng.randrange(count)))
    for _ in range(rng.choice([0, 0, 1, 2, 6])):
        events.append((rng.random() * 10, "crash", 0))
    options = ["--slots", str(rng.randint(1, 4)), "--grace-seconds", str(rng.randint(1, 3))]
    if any("EnableManagedSpotTraining" in t["TrainingJobDefinition"] for t in tunings):
        options += ["--spot-interruptions", "200"]
    slots = max(int(options[1]), *(max(t["Controller"].get("InstanceCounts", [0])) for t in tunings),
                *(t["TrainingJobDefinition"]["ResourceConfig"]["InstanceCount"] for t in tunings))
    options[1] = str(slots)
    return {"seed": seed, "local": local, "tunings": tunings, "events": sorted(events), "options": options,
            "slots": slots, "grace": int(options[3])}
