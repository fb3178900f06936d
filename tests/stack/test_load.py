"""Runs 50 tunings with 200 training jobs at once on the deployed stack, and measures the path from a metric line to a stop.

    tests/stack/run.sh test_load.py
    HYPERBAND_LOAD_TUNINGS=3 tests/stack/run.sh test_load.py

`run.sh` runs this file only on request, since it takes several minutes. It prints the times and asserts none: the emulator
invokes one function of a stream at a time.
"""

import json
import os
import statistics
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

from calls import NAME, Background, Calls, request

TUNINGS = int(os.environ.get("HYPERBAND_LOAD_TUNINGS", "50"))
PARALLEL = 4
JOBS = 6
EPOCH_SECONDS = 20
HOPS = ["line to fact", "fact to order", "order to claim", "claim to stopped"]


def load_request(name):
    """Returns a request whose first jobs run for three epochs before a rung compares them."""
    body = request(name)
    config, job = body["HyperParameterTuningJobConfig"], body["TrainingJobDefinition"]
    config["StrategyConfig"]["HyperbandStrategyConfig"] |= {"MinResource": 3, "MaxResource": 9}
    config["ResourceLimits"] = {"MaxNumberOfTrainingJobs": JOBS, "MaxParallelTrainingJobs": PARALLEL}
    job["StaticHyperParameters"] = {"epochs": "9", "seconds_per_epoch": str(EPOCH_SECONDS)}
    job["ResourceConfig"]["InstanceCount"] = 1
    job["StoppingCondition"] = {"MaxRuntimeInSeconds": 900, "MaxWaitTimeInSeconds": 1000}
    return body


class Running(Background):
    """Keeps the highest number of running jobs of the training service."""

    def __init__(self, client):
        super().__init__()
        self.client, self.most = client, 0

    def run(self):
        while not self.over.wait(1):
            pages = self.client.get_paginator("list_training_jobs").paginate(StatusEquals="InProgress")
            self.most = max(self.most, sum(len(page["TrainingJobSummaries"]) for page in pages))


class Load(Calls, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.start_stack()

    def test_many_tunings_with_many_running_jobs_lose_nothing(self):
        names = [f"load-{number:02}" for number in range(TUNINGS)]
        began = time.monotonic()
        with Running(self.training.client()) as running:
            with ThreadPoolExecutor(4) as pool:
                list(pool.map(lambda name: self.create(load_request(name)), names))
            print(f"{TUNINGS} tunings accepted after {time.monotonic() - began:.0f} s", flush=True)
            ended = {name: self.ended(name) for name in names}
        print(f"all ended after {time.monotonic() - began:.0f} s; at most {running.most} jobs at once", flush=True)
        hops = list(self.hops())
        for label, times in zip([*HOPS, "line to stopped"], zip(*(step + (sum(step),) for step in hops), strict=True), strict=True):
            times = sorted(times)
            print(f"{label:17} median {statistics.median(times):6.0f} ms   "
                  f"99 % {times[int(0.99 * (len(times) - 1))]:6.0f} ms   longest {times[-1]:6.0f} ms   of {len(times)}")

        self.assertEqual({described["HyperParameterTuningJobStatus"] for described in ended.values()}, {"Completed"})
        for name in names:
            _, jobs, _ = self.check_completed(name)
            self.assertEqual(len(jobs), JOBS)
        self.assertEqual(running.most, TUNINGS * PARALLEL)
        self.assertEqual(self.failures(), 0)
        log = self.emulator.client("logs").filter_log_events(logGroupName=f"/aws/lambda/{NAME}-actuator")["events"]
        kept = [event["message"] for event in log if "HandOver" in event["message"]]
        self.assertEqual(kept, [], "another invocation performs every start")
        self.assertGreater(len(hops), TUNINGS, "rungs stopped jobs")

    def hops(self):
        """Yields the times of each stop that a metric caused, in ms, in the order of `HOPS`.

        They come from the table's stream. The emulator writes a record's time into its sequence number.
        """
        stored, orders, claimed, stopped = {}, {}, {}, {}
        for record in self.stream():
            image, at = record.get("NewImage"), int(record["SequenceNumber"][:20])
            if not image:
                continue
            kind, _, tuning = image["pk"]["S"].partition("#")
            key = image["sk"]["S"]
            if kind == "F":
                stored.setdefault((tuning, key.split("#", 1)[1]), at)
            elif kind == "T" and key.startswith("STEP#"):
                step = json.loads(image["data"]["S"])
                lines = [fact for fact in step["facts"] if "MetricsLogged" in fact["fact"]]
                for stop in (ruling["Stop"] for ruling in step["rulings"] if "Stop" in ruling):
                    if lines and "Rung" in stop["why"]:
                        latest = max(lines, key=lambda fact: fact["at"])
                        name = "stop-{trial}-{rung}-{attempt}".format(**stop["job"])
                        orders[tuning, name] = (latest["at"], stored[tuning, latest["key"]], at)
            elif kind == "A":
                times = {"Performing": claimed, "Done": stopped}.get(image["status"]["S"], {})
                times.setdefault((tuning, key), at)
        for action, times in orders.items():
            # A stop of a job that never ran is cancelled.
            if action not in stopped:
                continue
            times += (claimed[action], stopped[action])
            yield tuple(later - earlier for earlier, later in zip(times, times[1:], strict=False))

    def stream(self):
        """Yields every record of the table's stream."""
        streams = self.emulator.client("dynamodbstreams")
        arn = streams.list_streams(TableName=self.stack.outputs()["TableName"])["Streams"][0]["StreamArn"]
        for shard in streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
            iterator = streams.get_shard_iterator(
                StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON")["ShardIterator"]
            while iterator:
                page = streams.get_records(ShardIterator=iterator)
                yield from (record["dynamodb"] for record in page["Records"])
                iterator = page.get("NextShardIterator") if page["Records"] else None


if __name__ == "__main__":
    unittest.main(failfast=True)
