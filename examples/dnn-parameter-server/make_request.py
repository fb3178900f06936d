"""Prints the tuning request: CreateHyperParameterTuningJob's JSON plus the object `Controller`.

Hyperband from 1 to 27 epochs over five hyperparameters and the number of instances, on spot instances, under a cap in
dollars. Must be a pure function of its options: tune.sh continues a tuning if its request is unchanged.
"""

import argparse
import json
import sys
from pathlib import Path

INSTANCE = "ml.c5.xlarge"
USD_PER_HOUR = 0.204
MAX_RUN_SECONDS = 600
MAX_WAIT_SECONDS = 1200
# The ledger adds these to a job's worst case: the grace period of a stop, and the upload of the model.
STOP_AND_UPLOAD_SECONDS = 120 + 180
METRICS = {"train:loss": "train-loss", "validation:accuracy": "validation-accuracy", "train:staleness": "staleness"}
# A number with sign and exponent, nan or inf.
NUMBER = r"([-+.\w]*\w)"


def worst_case_usd(instances):
    seconds = MAX_WAIT_SECONDS + STOP_AND_UPLOAD_SECONDS
    return instances * USD_PER_HOUR * seconds / 3600


def parameter(name, least, greatest, scaling):
    return {"Name": name, "MinValue": least, "MaxValue": greatest, "ScalingType": scaling}


def channel(name, folder, distribution):
    source = {
        "S3DataType": "S3Prefix",
        "S3Uri": f"{folder.resolve().as_uri()}/{name}/",
        "S3DataDistributionType": distribution,
    }
    return {"ChannelName": name, "DataSource": {"S3DataSource": source}, "ContentType": "application/x-npy"}


def limits(options):
    jobs = {"MaxParallelTrainingJobs": options.parallel}
    # The default is the number of jobs of a full set of Hyperband's brackets.
    return jobs if options.jobs is None else {"MaxNumberOfTrainingJobs": options.jobs, **jobs}


def cluster_sizes(options):
    """Returns the fields that make the number of instances a dimension of the search.

    The mini-batch in the search is multiplied by the number of instances.
    """
    return {"InstanceCounts": options.instances, "ScaleWithInstances": ["mini_batch"]}


def initial(options):
    """Returns the field for the first trials: the known values on each number of instances, with the same mini-batch."""
    if not options.first:
        return {}
    known = dict(pair.split("=", 1) for pair in options.first)
    if bad := [count for count in options.instances if int(known["mini_batch"]) % count]:
        raise SystemExit(f"make_request.py: invalid --instances {bad[0]}: expected a divisor of the mini-batch {known['mini_batch']}")
    scaled = lambda count: {**known, "mini_batch": str(int(known["mini_batch"]) // count), "InstanceCount": str(count)}  # noqa: E731
    return {"InitialConfigurations": [scaled(count) for count in options.instances]}


def controller(options):
    return {
        "MaxCostUsd": options.cap,
        "InstancePricesUsdPerHour": {INSTANCE: USD_PER_HOUR},
        "Sampler": options.sampler,
        # Hyperband's brackets. Without it, the controller compares later.
        "ReductionFactor": 3,
        "EpochPattern": r"epoch (\d+):",
        # train.py counts epochs from 1 and continues to count after a restart.
        "EpochBase": 1,
        "EpochNumbering": "Absolute",
        "ResourceHyperParameter": "epochs",
        "RungExecution": "Promote" if options.mode == "promote" else "Stop",
        **cluster_sizes(options),
        **initial(options),
    }


def request(options):
    # In Promote mode the controller sets the epochs of each job. In Stop mode it stops a job before its last epoch.
    epochs = {"epochs": str(options.max_resource)} if options.mode == "stop" else {}
    return {
        "HyperParameterTuningJobName": options.name,
        "HyperParameterTuningJobConfig": {
            "Strategy": "Hyperband",
            "StrategyConfig": {"HyperbandStrategyConfig": {"MinResource": 1, "MaxResource": options.max_resource}},
            "RandomSeed": options.seed,
            "HyperParameterTuningJobObjective": {"Type": "Maximize", "MetricName": "validation:accuracy"},
            "ResourceLimits": limits(options),
            "ParameterRanges": {
                "IntegerParameterRanges": [
                    # The untuned mini-batch of 32, divided by the number of instances, is in the range.
                    parameter("mini_batch", str(min(8, 32 // max(options.instances))), "256", "Logarithmic"),
                    parameter("hidden_units", "16", "128", "Logarithmic"),
                ],
                "ContinuousParameterRanges": [
                    parameter("learning_rate", "0.001", "1", "Logarithmic"),
                    parameter("momentum", "0", "0.99", "Linear"),
                    parameter("weight_decay", "0.000001", "0.01", "Logarithmic"),
                ],
                "CategoricalParameterRanges": [],
            },
            "TrainingJobEarlyStoppingType": "Off",
        },
        "TrainingJobDefinition": {
            "StaticHyperParameters": {"seed": "0", **epochs},
            "AlgorithmSpecification": {
                "TrainingImage": "example/dnn-parameter-server:local",
                "TrainingInputMode": "File",
                "MetricDefinitions": [
                    {"Name": name, "Regex": f"{printed}={NUMBER}"} for name, printed in METRICS.items()
                ],
            },
            "RoleArn": "arn:aws:iam::111122223333:role/example-training-role",
            "InputDataConfig": [
                channel("train", options.data, "ShardedByS3Key"),
                channel("validation", options.data, "FullyReplicated"),
            ],
            "OutputDataConfig": {"S3OutputPath": "s3://example-bucket/dnn-parameter-server/out/"},
            "CheckpointConfig": {"S3Uri": "s3://example-bucket/dnn-parameter-server/checkpoints/"},
            "EnableManagedSpotTraining": True,
            "StoppingCondition": {
                "MaxRuntimeInSeconds": MAX_RUN_SECONDS,
                "MaxWaitTimeInSeconds": MAX_WAIT_SECONDS,
            },
            "ResourceConfig": {
                "InstanceType": INSTANCE,
                "InstanceCount": max(options.instances),
                "VolumeSizeInGB": 30,
            },
        },
        "Controller": controller(options),
    }


def counts(text):
    """Returns the numbers of instances, ascending. The comparison needs one instance, and another number."""
    numbers = sorted(int(count) for count in text.split(","))
    if numbers[0] != 1 or len(set(numbers)) < max(len(numbers), 2):
        raise argparse.ArgumentTypeError("expected 1 and different larger numbers, for example 1,2,3")
    return numbers


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder that prepare.py wrote")
    parser.add_argument("--first", nargs="+", metavar="NAME=VALUE", help="hyperparameters of the first trials")
    parser.add_argument("--name", default="dnn-parameter-server")
    parser.add_argument("--mode", choices=("promote", "stop"), default="promote")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--parallel", type=int, default=3)
    parser.add_argument("--instances", type=counts, default=[1, 2, 4], metavar="N,N...")
    parser.add_argument("--max-resource", type=int, default=27)
    parser.add_argument("--cap", type=float, default=3.0)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--sampler", choices=("Model", "Sobol", "Random"), default="Model")
    return parser.parse_args()


def main():
    options = parse()
    worst = worst_case_usd(max(options.instances))
    at_once = int(options.cap / worst)
    print(
        f"cap: ${options.cap:.2f}; a running job reserves its worst case, at most ${worst:.2f}, "
        f"so the cap allows {at_once} jobs at a time"
        + ("" if at_once >= options.parallel else f", fewer than the requested {options.parallel}"),
        file=sys.stderr,
    )
    print(json.dumps(request(options), indent=2))


if __name__ == "__main__":
    main()
