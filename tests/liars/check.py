"""Checkers over the controller's answers. Each names the sentence of the documents that it checks.

They know the documents, the requests, the journals of the training programs and the processes in /proc. They do not
know how the controller works.
"""

import json
import math
import os
import re
import time

ENDED = {"Completed", "Failed", "Stopped", "DeleteFailed"}
JOB_ENDED = {"Completed", "Failed", "Stopped"}
JOB_ORDER = {"InProgress": 0, "Stopping": 1, "Completed": 2, "Failed": 2, "Stopped": 2}
TUNING_ORDER = {"InProgress": 0, "Stopping": 1, "Completed": 2, "Failed": 2, "Stopped": 2}
NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")
# Behaviours whose completed jobs have printed each epoch once, in order, in lines of their own.
PLAIN = {"honest", "flood", "longline", "binary", "mimic", "clock", "stderr", "ckpt_corrupt", "ckpt_huge", "ckpt_link",
         "noterm", "child", "session", "ties", "missing", "badformat", "buffered", "ckpt_delete", "decoys", "afterterm"}
MICRO = 1e-6


class Violations(list):
    """Broken promises: the sentence of the document, and what was seen instead."""

    def add(self, promise, seen):
        entry = (promise, str(seen)[:1500])
        if not any(promise == known for known, _ in self):
            self.append(entry)

    def check(self, holds, promise, seen):
        if not holds:
            self.add(promise, seen() if callable(seen) else seen)
        return holds


def difference(a, b, path=""):
    """Where two answers differ."""
    if isinstance(a, dict) and isinstance(b, dict):
        return [d for key in {*a, *b} for d in difference(a.get(key), b.get(key), f"{path}.{key}")]
    return [] if a == b else [(path, a, b)]


def finite(text):
    """The number that a captured text reads as; None for NaN, infinity and other text."""
    if not NUMBER.fullmatch(text):
        return None
    number = float(text)
    return number if math.isfinite(number) else None


def journals(folder):
    """What the programs truly printed: training job -> host -> entries."""
    found = {}
    for name in os.listdir(folder):
        job, host = name.rsplit(".", 1)
        with open(os.path.join(folder, name)) as file:
            lines = file.read().split("\n")
        entries = []
        for line in lines:
            try:
                entries.append(json.loads(line))
            except ValueError:
                pass  # a killed program leaves half a line
        found.setdefault(job, {})[host] = entries
    return found


class History:
    """All answers about one tuning, in the order in which they came."""

    def __init__(self, request, violations):
        self.request = request
        self.name = request["HyperParameterTuningJobName"]
        self.config = request["HyperParameterTuningJobConfig"]
        self.definition = request["TrainingJobDefinition"]
        self.controller = request["Controller"]
        self.bad = violations
        limits = self.config["ResourceLimits"]
        self.parallel = limits["MaxParallelTrainingJobs"]
        combinations = math.prod(len(r["Values"]) for r in self.config["ParameterRanges"]["CategoricalParameterRanges"])
        # A grid may retry as many jobs again, REQUEST.md: "There are at most as many of them as jobs."
        self.jobs_limit = limits.get("MaxNumberOfTrainingJobs") or 2 * (combinations + 1)
        self.cap = self.controller.get("MaxCostUsd")
        self.cap_lowered = False
        self.status = None
        self.spent = 0
        self.jobs = {}
        self.last = None
        self.frozen_at = None  # when no further job may start: a second after a pause or a stop was accepted
        self.frozen = None
        self.instances = self.definition["ResourceConfig"]["InstanceCount"]

    def observe(self, describe, jobs, processes):
        """Checks one sample. The list of jobs was read after `describe`."""
        bad, name = self.bad, self.name
        status = describe["HyperParameterTuningJobStatus"]
        bad.check(self.status is None or TUNING_ORDER[status] >= TUNING_ORDER[self.status],
                  "the status of a tuning only moves forward", f"{name}: {self.status} -> {status}")
        bad.check(self.status not in ENDED or status == self.status,
                  "an ended tuning keeps its status", f"{name}: {self.status} -> {status}")
        money = describe["Controller"]
        spent, reserved = money["SpentUsd"], money["ReservedUsd"]
        bad.check(spent >= self.spent - MICRO, "MONEY.md: booked bills are not taken back", f"{name}: {self.spent} -> {spent}")
        if self.cap is not None and not self.cap_lowered:
            bad.check(spent + reserved <= self.cap + MICRO,
                      "MONEY.md: No job starts unless the cap pays for everything spent, everything reserved, and the "
                      "job's own reservation", f"{name}: spent {spent} + reserved {reserved} > cap {self.cap}")
        self.status, self.spent = status, spent
        running = [j for j in jobs if j["TrainingJobStatus"] not in JOB_ENDED]
        bad.check(len(running) <= self.parallel, "REQUEST.md: MaxParallelTrainingJobs of them at once",
                  f"{name}: {len(running)} jobs run, {self.parallel} may")
        alive = {p["job"] for p in processes if p["stray"] is None}
        bad.check(len(alive) <= self.parallel, "MaxParallelTrainingJobs bounds the real processes too",
                  f"{name}: {sorted(alive)} have processes, {self.parallel} may")
        bad.check(money["TrainingJobsLaunched"] <= self.jobs_limit, "REQUEST.md: A tuning has up to MaxNumberOfTrainingJobs",
                  f"{name}: {money['TrainingJobsLaunched']} launched, {self.jobs_limit} may")
        if self.frozen_at is not None and time.monotonic() > self.frozen_at + 1:
            if self.frozen is None:
                self.frozen = money["TrainingJobsLaunched"]
            bad.check(money["TrainingJobsLaunched"] <= self.frozen, "during a pause, and after a stop, no job is ordered",
                      f"{name}: {self.frozen} -> {money['TrainingJobsLaunched']}")
        listed = {j["TrainingJobName"]: j for j in jobs}
        for job, before in self.jobs.items():
            now = listed.get(job)
            # An attempt that never ran may disappear, and so is not missed.
            if now is None:
                bad.check("TrainingStartTime" not in before, "no training job gets lost", f"{job} disappeared: {before}")
                continue
            a, b = before["TrainingJobStatus"], now["TrainingJobStatus"]
            bad.check(JOB_ORDER[b] >= JOB_ORDER[a] and (a not in JOB_ENDED or a == b),
                      "the status of a training job only moves forward", f"{job}: {a} -> {b}; {before} {now}")
            kept = "KeepAlivePeriodInSeconds" in self.definition["ResourceConfig"]  # booked after the bill of the job
            for field in ("BillableSeconds", "CostUsd"):
                a, b = before["Controller"].get(field), now["Controller"].get(field)
                bad.check(a is None or a == b or kept and a <= b, "DESIGN.md: Local bills are final at once", f"{job}: {field} {a} -> {b}")
            bad.check(before["TunedHyperParameters"] == now["TunedHyperParameters"], "a job keeps its configuration", job)
        self.jobs.update(listed)
        self.last = describe

    def freeze(self, on):
        self.frozen_at, self.frozen = time.monotonic() if on else None, None

    def ended(self):
        return self.status in ENDED

    @staticmethod
    def runs(job, printed):
        """How often the program of a job began."""
        return sum("start" in e for e in printed.get(job, {}).get("algo-1", []))

    def best_of(self, values):
        return (min if self.config["HyperParameterTuningJobObjective"]["Type"] == "Minimize" else max)(values)

    def final(self, describe, jobs, details, decisions, cost, printed, processes, crashed, explained):
        """Checks the answers after the end."""
        bad, name = self.bad, self.name
        self.observe(describe, jobs, processes)
        bad.check(not processes, "no process survives its tuning's end",
                  f"{name}: {processes}")
        self.money(describe, jobs, cost, printed, crashed)
        self.counters(describe, jobs, decisions, printed)
        self.curves(details, printed, crashed)
        self.best(describe, jobs, details, printed)
        for trial in explained:
            self.rungs(trial, details, printed)
            self.judged_at_each_rung(trial, details, printed)

    def money(self, describe, jobs, cost, printed, crashed):
        bad, name, controller = self.bad, self.name, describe["Controller"]
        bad.check(controller["ReservedUsd"] == 0, "MONEY.md: Only a job's bill frees its reservation (nothing is reserved at "
                  "the end)", f"{name}: {controller['ReservedUsd']}")
        price = self.controller.get("InstancePricesUsdPerHour", {}).get("ml.local.machine", 0)
        total, kept = 0, "KeepAlivePeriodInSeconds" in self.definition["ResourceConfig"]  # the cost of keeping comes on top
        for job in jobs:
            seconds = job["Controller"].get("BillableSeconds", 0)
            instances = int(job["TunedHyperParameters"].get("InstanceCount", self.instances))
            expected = math.ceil(round(seconds * instances * price / 3600 / MICRO, 3)) * MICRO
            booked = job["Controller"].get("CostUsd", 0)
            total += booked
            bad.check(abs(booked - expected) < MICRO / 2 or kept and booked > expected, "MONEY.md: amounts are the cost of the same seconds at the prices in the "
                      "request", f"{job['TrainingJobName']}: {seconds} s cost {booked}, not {expected}")
            limit = self.definition["StoppingCondition"]["MaxRuntimeInSeconds"]
            bad.check(seconds <= limit + 60, "MONEY.md: MaxRuntimeInSeconds bounds a job, and its stop takes little longer",
                      f"{job['TrainingJobName']}: {seconds} s billed, limit {limit} s")
            times = job.get("TrainingStartTime"), job.get("TrainingEndTime")
            if all(times) and not self.definition.get("EnableManagedSpotTraining"):
                bad.check(abs(seconds - (times[1] - times[0])) <= 1.01, "MONEY.md: a job is billed from TrainingStartTime until "
                          "TrainingEndTime", f"{job['TrainingJobName']}: {seconds} s billed, ran {times}")
            for entries in printed.get(job["TrainingJobName"], {}).values():
                real = entries[-1]["t"] - entries[0]["t"] if entries else 0
                if not self.definition.get("EnableManagedSpotTraining"):
                    # A controller that stood still before its end has missed a heartbeat.
                    bad.check(seconds >= real - (1 if crashed else 0.1), "the bill covers the time that the program really ran",
                              f"{job['TrainingJobName']}: {seconds} s billed, wrote its journal for {real} s")
        bad.check(abs(total - controller["SpentUsd"]) < MICRO or kept and total < controller["SpentUsd"],
                  "SpentUsd is the sum of the booked bills",
                  f"{name}: jobs {total}, SpentUsd {controller['SpentUsd']}")
        booked = sum(row.get("BookedUsd", 0) for row in cost["TrainingJobs"])
        bad.check(abs(booked - controller["SpentUsd"]) < MICRO, "SpentUsd is the sum of the booked costs, with kept instances",
                  f"{name}: {booked}, SpentUsd {controller['SpentUsd']}")
        for row in cost["TrainingJobs"]:
            bad.check(not row["Differs"], "ledger and training service agree", row)

    def counters(self, describe, jobs, decisions, printed):
        bad, name = self.bad, self.name
        tally = describe["TrainingJobStatusCounters"]
        # DESIGN.md: "An attempt that never had instances and was billed nothing counts neither as a training job nor in the
        # counters."
        by_status = {s: sum(j["TrainingJobStatus"] == s and "TrainingStartTime" in j for j in jobs) for s in JOB_ENDED}
        bad.check(by_status["Completed"] == tally["Completed"] and by_status["Stopped"] == tally["Stopped"]
                  and tally["InProgress"] == 0, "the counters of Describe agree with the list", f"{name}: {tally} {by_status}")
        numbers = [step["n"] for step in decisions]
        bad.check(numbers == list(range(1, len(numbers) + 1)), "DESIGN.md: step n, written once", f"{name}: {numbers}")
        starts = {}
        for step in decisions:
            for ruling in step["rulings"]:
                if isinstance(ruling, dict) and "Start" in ruling:
                    start = ruling["Start"]
                    key = "{trial}-{rung}-{attempt}".format(**start["job"])
                    bad.check(key not in starts, "DESIGN.md: a job's key is never used twice", f"{name}: {key}")
                    starts[key] = start
        configurations = {}
        for job in jobs:
            short = job["TrainingJobName"][len(name) + 8:]
            bad.check(short in starts, "each training job has a decision", job["TrainingJobName"])
            trial = job["Controller"]["Trial"]
            config = configurations.setdefault(trial, job["TunedHyperParameters"])
            bad.check(config == job["TunedHyperParameters"], "a trial is one configuration", job["TrainingJobName"])
        names = {j["TrainingJobName"] for j in jobs}
        for job, hosts in printed.items():
            if re.fullmatch(re.escape(name) + r"-[0-9a-z]{6}-\d+-\d+-\d+", job):
                bad.check(job in names, "each job that really ran is listed (and so billed)", job)
                for host, entries in hosts.items():
                    begun = [e for e in entries if e.get("start")]
                    bad.check(len(begun) <= 1 or self.definition.get("EnableManagedSpotTraining"),
                              "DESIGN.md: job: one run of a trial on a cluster, name never used twice", f"{job} {host}: {begun}")

    def printed_by(self, trial, details, printed):
        """The truth about a trial: (epoch, number or None, job) of each line of its metric host, in order."""
        lines = []
        for job in sorted((d for d in details if d["Controller"]["Trial"] == trial), key=lambda d: d["Controller"]["Attempt"]):
            for entry in printed.get(job["TrainingJobName"], {}).get("algo-1", []):
                if "value" in entry:
                    lines.append((entry["epoch"], finite(entry["value"]), job["TrainingJobName"]))
        return lines

    def curves(self, details, printed, crashed):
        bad = self.bad
        exact = "EpochPattern" in self.controller
        for job in details:
            trial, curve = job["Controller"]["Trial"], job["Curve"]
            lines = self.printed_by(trial, details, printed)
            known = {(e if exact else None, v) for e, v, _ in lines}
            for point in curve:
                if point.get("Value") is None:
                    continue
                bad.check((point["Resource"] if exact else None, point["Value"]) in known, "each value that the controller reports was printed by that trial"
                          + (" at that epoch" if exact else ""), f"{job['TrainingJobName']}: {point}, printed {lines[:50]}")
            epochs = [p["Resource"] for p in curve]
            bad.check(epochs == sorted(set(epochs)), "a curve has each epoch once, in order", f"{job['TrainingJobName']}: {epochs}")
            siblings = [d for d in details if d["Controller"]["Trial"] == trial]
            kind = next((e["kind"] for e in printed.get(job["TrainingJobName"], {}).get("algo-1", []) if "kind" in e), None)
            spot = self.definition.get("EnableManagedSpotTraining")
            if kind in PLAIN and len(siblings) == 1 and job["TrainingJobStatus"] == "Completed" and not crashed and not spot:
                truth = [(e, v) for e, v, _ in lines]
                if exact:
                    # A gap may be shown as an epoch without a value, or not at all.
                    shown = [(p["Resource"], p.get("Value")) for p in curve if p.get("Value") is not None]
                    bad.check(shown == [t for t in truth if t[1] is not None],
                              "the log of a completed job is read to its end", f"{job['TrainingJobName']} {kind}: {curve} {truth}")
                else:
                    shown = [p.get("Value") for p in curve if p.get("Value") is not None]
                    bad.check(shown == [v for _, v in truth if v is not None],
                              "REQUEST.md: without EpochPattern, lines are counted", f"{job['TrainingJobName']} {kind}: {curve} {truth}")
            values = [p["Value"] for p in curve if p.get("Value") is not None]
            final = job.get("FinalHyperParameterTuningJobObjectiveMetric", {}).get("Value")
            bad.check(final is None or final in [v for _, v, _ in lines], "the final value was printed by that trial",
                      f"{job['TrainingJobName']}: {final}, printed {lines}")
            best = job["Controller"].get("BestValue")
            runs = self.runs(job["TrainingJobName"], printed)
            if best is not None and len(siblings) == 1 and runs == 1 and values and len(curve) < 200:
                bad.check(best == self.best_of(values), "BestValue is the best value of the curve",
                          f"{job['TrainingJobName']}: {best} of {values}")

    def best(self, describe, jobs, details, printed):
        bad, name = self.bad, self.name
        values = [p["Value"] for d in details for p in d["Curve"] if p.get("Value") is not None]
        seen = describe["Controller"].get("BestSeen")
        # Without EpochPattern, a value after an interruption or in a later job of a trial may have no known epoch, and counts for
        # the best value only.
        trials = [j["Controller"]["Trial"] for j in jobs]
        again = len(trials) > len(set(trials)) or any(self.runs(j["TrainingJobName"], printed) > 1 for j in jobs)
        restarted = "EpochPattern" not in self.controller and again
        is_thinned = any(len(d["Curve"]) > 200 for d in details)  # an answer has a part of a long curve
        if seen is not None:
            bad.check(seen["Value"] in values or restarted or is_thinned, "BestSeen is in a curve", f"{name}: {seen}")
        if values and not restarted and not is_thinned:
            bad.check(seen is not None and seen["Value"] == self.best_of(values),
                      "REQUEST.md: BestSeen: the best value at any epoch", f"{name}: {seen}, but {self.best_of(values)}")
        counting = [j for j in jobs if j["TrainingJobStatus"] in ("Completed", "Stopped")
                    and j["Controller"].get("BestValue") is not None]
        best = describe.get("BestTrainingJob")
        if best is None:
            bad.check(not counting, "Describe has a best training job if a job has a value", f"{name}: {counting}")
            return
        listed = next((j for j in jobs if j["TrainingJobName"] == best["TrainingJobName"]), None)
        if bad.check(listed is not None, "the best training job is listed", f"{name}: {best}"):
            # As in Automatic Model Tuning, the final value decides, which is the value of the saved model.
            final = [j["FinalHyperParameterTuningJobObjectiveMetric"]["Value"] for j in counting
                     if "FinalHyperParameterTuningJobObjectiveMetric" in j]
            mine = best["FinalHyperParameterTuningJobObjectiveMetric"]["Value"]
            bad.check(mine == listed["FinalHyperParameterTuningJobObjectiveMetric"]["Value"] and (not final or mine == self.best_of(final)),
                      "REQUEST.md: BestTrainingJob stays the one with the best value", f"{name}: {listed}, but {final}")

    def rungs(self, trial, details, printed):
        """Recomputes each comparison of a trial that `explain` shows."""
        bad, sign = self.bad, 1 if self.config["HyperParameterTuningJobObjective"]["Type"] == "Minimize" else -1
        for entry in trial["Entries"]:
            rung = entry.get("Rung")
            if not rung:
                continue
            where = f"{self.name} trial {trial['Trial']}: {json.dumps(rung)}"
            others = [a for a in rung["Arrivals"] if a["Trial"] != trial["Trial"]]
            bad.check(rung["Arrived"] >= len(rung["Arrivals"]), "a rung lists those who arrived", where)
            if rung.get("Value") is None:
                bad.check(not rung["WentOn"], "DESIGN.md: A trial without a value at its level never continues", where)
                continue
            ahead = [a for a in others if a.get("Value") is not None and sign * a["Value"] < sign * rung["Value"]]
            ties = [a for a in others if a.get("Value") == rung["Value"]]
            if rung.get("Compared") != "Median" and "median" not in rung["Rule"]:
                bad.check(len(ahead) < rung["Rank"] <= len(ahead) + len(ties) + 1, "the rank follows from the values", where)
                if not rung["WentOn"]:
                    bad.check(rung["Arrived"] >= 2 and rung["Rank"] > rung["Allowed"],
                              "DESIGN.md: the best max(1, seen / eta) trials of a rung continue", where)
                elif rung["Rank"] > rung["Allowed"]:
                    bad.check(any(word in rung["Rule"] for word in ("predict", "target", "order")),
                              "a trial behind the best continues for a documented reason only", where)
                if entry["Kind"] == "Judged":
                    self.allowed(rung, trial["Rungs"], where)
                if entry["Kind"] == "Promoted":
                    # An open rung promotes the best 1/eta, a closed one the plan's share of all that joined, at least one.
                    eta = self.controller.get("ReductionFactor", 2)
                    bad.check(rung["Allowed"] <= max(1, math.ceil(rung["Arrived"] / eta)),
                              "DESIGN.md: An open rung promotes the best 1/eta of the trials that have ended", where)
            elif not rung["WentOn"]:
                bad.check(rung["Arrived"] > 5, "DESIGN.md: The first five trials at a level always continue", where)
            if "EpochPattern" in self.controller:
                lines = self.printed_by(trial["Trial"], details, printed)
                until = [v for e, v, _ in lines if e <= rung["Epoch"]]
                bad.check(rung["Value"] in until, "a trial is compared by a value that it printed up to that epoch",
                          f"{where} printed {lines}")
                values = [v for e, v, _ in lines if e <= rung["Level"] and v is not None]
                if self.config["Strategy"] == "Hyperband" and self.controller.get("RungExecution") != "Promote" and values \
                        and rung["Epoch"] == rung["Level"] and len({e for e, _, _ in lines}) == len(lines):
                    bad.check(rung["Value"] == self.best_of(values), "DESIGN.md: A running trial competes with its best value so far",
                              f"{where} printed {lines}")
                for other in others:
                    truth = [v for e, v, _ in self.printed_by(other["Trial"], details, printed)]
                    bad.check(other.get("Value") is None or other["Value"] in truth or "average" in rung["Rule"], "the rivals have values that they printed",
                              f"{where}: {other}, printed {truth}")

    def allowed(self, rung, levels, where):
        """Stop: how many trials of those that arrived at a rung may continue."""
        share = self.controller.get("ReductionFactor")
        if self.config["Strategy"] != "Hyperband" or self.controller.get("RungExecution") == "Promote":
            return
        if share is None and self.controller.get("Sampler", "Model") == "Model":
            # With 30 or fewer jobs, the best sixth pass the last comparison, a quarter the one before, and half the first.
            after = len(levels) - 2 - levels.index(rung["Level"])
            share = 2 if self.controller.get("Prefer") == "Value" else [6, 4, 2][after]
        self.bad.check("do not predict" in rung["Rule"] or rung["Allowed"] == max(1, rung["Arrived"] // (share or 3)),
                       "DESIGN.md: the best max(1, seen / eta) trials of a rung continue, the arriving trial included", where)

    def judged_at_each_rung(self, trial, details, printed):
        """Stop: a trial that trained beyond a level was compared there."""
        if self.config["Strategy"] != "Hyperband" or self.controller.get("RungExecution") == "Promote":
            return
        job = next((d for d in details if d["Controller"]["Trial"] == trial["Trial"]), None)
        kind = next((e["kind"] for e in printed.get(job["TrainingJobName"], {}).get("algo-1", []) if "kind" in e), None) if job else None
        if kind not in PLAIN - {"missing", "afterterm"} or self.last["HyperParameterTuningJobStatus"] != "Completed":
            return
        verdicts = [e["Rung"] for e in trial["Entries"] if e.get("Rung")]
        if "TargetObjectiveMetricValue" in self.config.get("TuningJobCompletionCriteria", {}):
            return  # DESIGN.md: "the trial that reached it trains to its end"
        if any(e["Kind"] == "StopOrdered" for e in trial["Entries"]) or not all(v["WentOn"] for v in verdicts):
            return  # it trained on while its stop was on its way
        levels = {v["Level"] for v in verdicts}
        reached = max((p["Resource"] for p in job["Curve"]), default=0)
        first = min(levels, default=None)
        for level in trial["Rungs"][:-1]:
            # A bracket that explores less has no comparison at the lower levels.
            if first is not None and first <= level < reached and job["Controller"].get("State") == "Completed":
                self.bad.check(level in levels, "a trial is compared at each rung that it reaches",
                               f"{job['TrainingJobName']}: compared at {sorted(levels)}, reached {reached}, rungs {trial['Rungs']}")
