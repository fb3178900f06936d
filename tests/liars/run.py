"""Runs random scenarios against the program and checks its answers.

    run.py --binary PATH --seeds A..B [--seconds S] [--keep] [--dir DIR]

One line for each seed. The exit code is 1 if a promise was broken; the line before names it.
"""

import argparse
import http.client
import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse

sys.dont_write_bytecode = True
import check  # noqa: E402
import generate  # noqa: E402

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "program.py")
SLOWEST_ANSWER = 30  # seconds; generous, since other programs may use the machine
SLOWEST_START = 120
MEMORY = 500 << 20
TABLE = 100 << 20


def processes(mark):
    """Real processes of training jobs whose environment has the mark."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                variables = dict(v.split(b"=", 1) for v in file.read().split(b"\0") if b"=" in v)
        except OSError:
            continue
        if variables.get(b"FUZZ_JOURNAL") == mark.encode() and b"TRAINING_JOB_NAME" in variables:
            stray = variables.get(b"FUZZ_STRAY")
            found.append({"pid": int(pid), "job": variables[b"TRAINING_JOB_NAME"].decode(),
                          "host": variables.get(b"SM_CURRENT_HOST", b"").decode(),
                          "stray": stray and stray.decode()})
    return found


class Scenario:
    def __init__(self, binary, seed, folder):
        self.binary, self.folder = binary, os.path.abspath(folder)
        folder = self.folder
        self.plan = generate.scenario(seed)
        self.rng = random.Random(seed + 1)
        self.bad = check.Violations()
        self.journal = os.path.join(folder, "journal")
        os.makedirs(self.journal)
        self.data = os.path.join(folder, "data")
        self.environment = {**os.environ, "FUZZ_JOURNAL": self.journal}
        self.histories = {t["HyperParameterTuningJobName"]: check.History(t, self.bad) for t in self.plan["tunings"]}
        self.submitted, self.deleted = set(), set()
        self.server = None
        self.crashed = False
        self.slowest = 0

    # The server

    def command(self, *words):
        return [self.binary, *words, "--data-dir", self.data]

    def serve(self, again=False):
        log = open(os.path.join(self.folder, "stderr"), "ab")
        self.server = subprocess.Popen(
            [*self.command("serve"), "--listen", "127.0.0.1:0", "--output", "json", *self.plan["options"], "--",
             sys.executable, PROGRAM], stdout=subprocess.PIPE, stderr=log, env=self.environment, cwd=self.folder)
        ready, _, _ = select.select([self.server.stdout], [], [], SLOWEST_START)
        line = self.server.stdout.readline() if ready else b""
        if not line:
            self.bad.add("serve --help: The same command line continues all tunings, even after kill -9", self.stderr()[-400:])
            self.server.kill()
            self.server.wait()
            self.server.stdout.close()
            if again:
                raise RuntimeError("the server did not start")
            time.sleep(2)
            return self.serve(again=True)
        self.address = urllib.parse.urlparse(json.loads(line)["Endpoint"]).netloc

    def stderr(self):
        with open(os.path.join(self.folder, "stderr"), errors="replace") as file:
            return file.read()

    def call(self, method, path, body=None):
        """Status and JSON of an answer. Any answer of the class 5xx and any lost connection breaks a promise."""
        begun = time.monotonic()
        connection = http.client.HTTPConnection(self.address, timeout=60)
        try:
            connection.request(method, path, body=body, headers={"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            # A server may refuse an oversized body before it was sent.
            if body is None or len(body) < 1_000_000:
                self.bad.add("the server answers each request", f"{method} {path[:200]}: {error!r}")
            return 0, {}
        finally:
            connection.close()
        seconds = time.monotonic() - begun
        self.slowest = max(self.slowest, seconds)
        self.bad.check(seconds < SLOWEST_ANSWER, "answers stay quick", f"{method} {path[:200]} took {seconds:.1f} s")
        self.bad.check(answer.status < 500, "no request gets an answer 5xx", f"{method} {path[:200]} {answer.status} {text[:500]}")
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, {}

    def pages(self, path, member):
        """All entries of a list."""
        entries, token = [], None
        while True:
            query = "?MaxResults=50" + (f"&NextToken={urllib.parse.quote(token)}" if token else "")
            status, answer = self.call("GET", path + query)
            if not self.bad.check(status == 200, "a list has pages", f"{path} {status} {answer}"):
                return entries
            entries += answer[member]
            token = answer.get("NextToken")
            if not token:
                return entries

    # What the driver does

    def act(self, action, request):
        name = request["HyperParameterTuningJobName"]
        history, path = self.histories[name], f"/tuning-jobs/{name}"
        if action == "submit":
            status, answer = self.call("POST", "/tuning-jobs", json.dumps(request))
            self.bad.check(status == 201, "a valid request is accepted", f"{status} {answer}")
            if status == 201:
                self.submitted.add(name)
            return
        if name not in self.submitted or name in self.deleted:
            return
        if action == "stop":
            if self.call("POST", path + "/stop")[0] == 200:
                history.freeze(True)
        elif action == "stop_job":
            jobs = [j for j in history.jobs.values() if j["TrainingJobStatus"] == "InProgress"]
            if jobs:
                self.call("POST", f"{path}/training-jobs/{self.rng.choice(jobs)['TrainingJobName']}/stop")
        elif action == "again":
            status, answer = self.call("POST", "/tuning-jobs", json.dumps(request))
            self.bad.check(status == 200 and answer.get("Existed"), "the same request again answers the same ARN", f"{status} {answer}")
        elif action == "conflict":
            other = json.loads(json.dumps(request))
            other["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxParallelTrainingJobs"] = 7
            status, answer = self.call("POST", "/tuning-jobs", json.dumps(other))
            self.bad.check(400 <= status < 500, "another request of the same name is refused", f"{status} {answer}")
        elif action in ("raise_cap", "lower_cap") and history.cap is not None:
            cap = round(history.cap * (1.5 if action == "raise_cap" else 0.7), 6)
            before, history.cap = history.cap, max(history.cap, cap)  # a sample may come before the answer
            status, answer = self.call("PATCH", path, json.dumps({"MaxCostUsd": cap}))
            if status != 200:
                history.cap = before
            elif action == "lower_cap":
                history.cap_lowered = True
        elif action == "parallel":
            number = self.rng.randint(1, 4)
            status, _ = self.call("PATCH", path, json.dumps({"MaxParallelTrainingJobs": number}))
            if status == 200:
                # Running jobs continue under a lower limit.
                history.parallel = max(history.parallel, number)
        elif action == "pause":
            if self.call("PATCH", path, json.dumps({"paused": True}))[0] == 200:
                history.freeze(True)
                self.events.append((self.elapsed() + 3, "resume", request))
        elif action == "resume":
            history.freeze(False)
            self.call("PATCH", path, json.dumps({"paused": False}))
        elif action == "kill_job":
            real = [p for p in processes(self.journal) if p["stray"] is None]
            if real:
                try:
                    os.kill(self.rng.choice(real)["pid"], signal.SIGKILL)
                except OSError:
                    pass
        elif action == "malformed":
            for method, template, body in self.rng.sample(generate.MALFORMED, 8):
                if (method, history.ended()) != ("DELETE", True):
                    status, _ = self.call(method, template.replace("NAME", name), body)
                    self.bad.check(status != 201, "an invalid request is not stored", f"{method} {template[:80]} {status}")
        elif action == "delete" and history.ended():
            # The server may ask to wait until the tuning is settled.
            if self.call("DELETE", path)[0] == 200:
                self.deleted.add(name)
                status, _ = self.call("GET", path)
                self.bad.check(status == 404, "a deleted tuning is gone", f"{name}: {status}")

    def crash(self):
        """The server, or the command, dies without a chance to clean up, and the same command line continues."""
        self.server.kill()
        self.server.wait()
        self.crashed = True
        time.sleep(self.rng.random() * 2)

    def elapsed(self):
        return time.monotonic() - self.begun

    def sample(self):
        """One look at all tunings; a number that changes as long as there is progress."""
        real = processes(self.journal)
        # A job of several instances has one process for each, and a process may start commands of its own.
        count = len({(p["job"], p["host"]) for p in real if p["stray"] is None})
        self.bad.check(count <= self.plan["slots"], "serve --slots N: Maximum number of parallel training processes",
                       f"{count} processes: {real}")
        progress = 0
        for name in self.submitted - self.deleted:
            status, describe = self.call("GET", f"/tuning-jobs/{name}")
            if status != 200:
                self.bad.add("a submitted tuning is described", f"{name}: {status} {describe}")
                continue
            jobs = self.pages(f"/tuning-jobs/{name}/training-jobs", "TrainingJobSummaries")
            self.histories[name].observe(describe, jobs, [p for p in real if p["job"].startswith(name + "-")])
            progress += describe["LastModifiedTime"]
        with open(f"/proc/{self.server.pid}/status") as file:
            memory = next((int(l.split()[1]) << 10 for l in file if l.startswith("VmHWM")), 0)
        self.bad.check(memory < MEMORY, "the memory of the server is bounded", f"{memory >> 20} MiB")
        return progress

    def patience(self):
        """Seconds without any change after which a tuning counts as stuck: a whole time limit, its stop, and a minute."""
        limits = [t["TrainingJobDefinition"]["StoppingCondition"] for t in self.plan["tunings"]]
        return max(l.get("MaxWaitTimeInSeconds", l["MaxRuntimeInSeconds"]) for l in limits) + self.plan["grace"] + 60

    def drive(self):
        """Until all tunings have ended and all events have happened."""
        self.begun = time.monotonic()
        self.events = [(at, action, self.plan["tunings"][n]) for at, action, n in self.plan["events"]]
        changed, progress = time.monotonic(), None
        while True:
            due = [e for e in self.events if e[0] <= self.elapsed()]
            self.events = [e for e in self.events if e not in due]
            for _, action, request in due:
                if action == "crash":
                    self.crash()
                    self.serve()
                    changed = time.monotonic()
                else:
                    self.act(action, request)
            if self.server.poll() is not None:
                self.bad.add("the server never stops by itself", f"exit code {self.server.returncode}: {self.stderr()[-1000:]}")
                return
            now = self.sample()
            if now != progress:
                changed, progress = time.monotonic(), now
            open_ = [n for n in self.submitted - self.deleted if not self.histories[n].ended()]
            if not open_ and not any(a in ("submit", "resume") for _, a, _ in self.events):
                for _, action, request in self.events:
                    if action in ("delete", "again", "conflict", "malformed", "stop"):
                        self.act(action, request)
                return
            if time.monotonic() - changed > self.patience():
                self.bad.add("every tuning ends", f"{open_} did not change for {self.patience()} s: "
                             + json.dumps([self.histories[n].last for n in open_])[:1200])
                return
            time.sleep(0.15)

    def run_locally(self):
        """The same tuning in one process, without HTTP."""
        request = os.path.join(self.folder, "request.json")
        with open(request, "w") as file:
            json.dump(self.plan["tunings"][0], file)
        command = [*self.command("run"), request, "--output", "json", *self.plan["options"], "--", sys.executable, PROGRAM]
        crashes = [at for at, action, _ in self.plan["events"] if action == "crash"]
        bound = self.patience() * (self.histories[self.plan["tunings"][0]["HyperParameterTuningJobName"]].jobs_limit + 2)
        while True:
            with open(os.path.join(self.folder, "stderr"), "ab") as log:
                out = open(os.path.join(self.folder, "stdout"), "w+")
                self.server = subprocess.Popen(command, stdout=out, stderr=log, env=self.environment, cwd=self.folder)
            begun = time.monotonic()
            while self.server.poll() is None:
                real = {(p["job"], p["host"]) for p in processes(self.journal) if p["stray"] is None}
                self.bad.check(len(real) <= self.plan["slots"], "run --slots N: Maximum number of parallel training processes",
                               real)
                if crashes and time.monotonic() - begun > crashes[0]:
                    crashes.pop(0)
                    self.crash()
                    break
                if time.monotonic() - begun > bound:
                    self.bad.add("every tuning ends", f"run did not end within {bound} s")
                    self.server.kill()
                time.sleep(0.1)
            else:
                break
        out.seek(0)
        text = out.read()
        self.bad.check(self.server.returncode in (0, 1), "Exit codes: 0 success, 1 the tuning failed",
                       f"{self.server.returncode}: {self.stderr()[-600:]}")
        try:
            json.loads(text)
        except ValueError:
            self.bad.add("run --output json prints JSON", text[:500])
        self.submitted.add(self.plan["tunings"][0]["HyperParameterTuningJobName"])

    def ask(self, *words):
        """The JSON of a command on the data directory."""
        done = subprocess.run([*self.command(*words), "--output", "json"], capture_output=True, text=True, errors="replace", timeout=120)
        self.bad.check(done.returncode == 0, f"hyperband {words[0]} succeeds on the data directory",
                       f"{words}: {done.returncode} {done.stdout[-500:]} {done.stderr[-500:]}")
        try:
            return json.loads(done.stdout)
        except ValueError:
            return None

    def finish(self):
        """All answers about the ended tunings, first by HTTP, then from the data directory."""
        deadline = time.monotonic() + self.plan["grace"] + 5
        while processes(self.journal) and time.monotonic() < deadline:
            time.sleep(0.1)
        real, printed, described = processes(self.journal), check.journals(self.journal), {}
        names = [n for n in sorted(self.submitted - self.deleted)]
        for name in names:
            path = f"/tuning-jobs/{name}"
            _, describe = self.call("GET", path)
            jobs = self.pages(path + "/training-jobs", "TrainingJobSummaries")
            details = [self.call("GET", f"{path}/training-jobs/{j['TrainingJobName']}")[1] for j in jobs]
            decisions = self.pages(path + "/decisions", "Decisions")
            cost = {"TrainingJobs": self.pages(path + "/cost", "TrainingJobs")}
            described[name] = (describe, jobs, details, decisions, cost)
            status, _ = self.call("GET", path + "/report")
            self.bad.check(status == 200, "the report of a tuning is an HTML page", f"{name}: {status}")
        stopped = time.monotonic()
        self.server.send_signal(signal.SIGTERM)
        try:
            code = self.server.wait(timeout=60 + self.plan["grace"])
            self.bad.check(code in (0, 130, 143, -15), "SIGTERM ends the server", f"{code}")
        except subprocess.TimeoutExpired:
            self.bad.add("SIGTERM ends the server", f"it ran on for {time.monotonic() - stopped:.0f} s")
            self.server.kill()
        self.bad.check("panicked" not in self.stderr(), "the server never panics", lambda: self.stderr()[-1500:])
        size = os.path.getsize(os.path.join(self.data, "table.sqlite"))
        self.bad.check(size < TABLE, "the table is bounded", f"{size >> 20} MiB")
        for name in names:
            describe, jobs, details, decisions, cost = described[name]
            trials = sorted({j["Controller"]["Trial"] for j in jobs})
            explained = [e for e in (self.ask("explain", name, str(t)) for t in trials) if e]
            mine = [p for p in real if p["job"].startswith(name + "-")]
            self.histories[name].final(describe, jobs, details, decisions, cost, printed, mine, self.crashed, explained)
            replay = self.ask("replay", name)
            self.bad.check(replay and replay["Identical"], "hyperband replay: all decisions are identical", replay)
            self.ask("audit", name)  # fails with a violation
            local = self.ask("describe", name)
            # REQUEST.md, BestModel: "The program prints the folder, or null without a model".
            for answer in (local or {}, describe):
                answer.get("Controller", {}).get("BestModel", {}).pop("Location", None)
            self.bad.check(local == describe or local is None, "describe on the data directory agrees with the API",
                           lambda: check.difference(local, describe))
            bills = self.ask("cost", name)
            for row in bills["TrainingJobs"] if bills else []:
                self.bad.check(not row["Differs"], "hyperband cost: ledger and training service agree", row)
            self.export(name, jobs)

    def export(self, name, jobs):
        done = subprocess.run([*self.command("export", name), "--format", "jsonl"], capture_output=True, text=True, timeout=120)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        billed = sum(j["Controller"].get("BillableSeconds", 0) for j in jobs)
        self.bad.check(sum(r["BillableSeconds"] or 0 for r in rows) == billed, "export: the seconds of all trials are those of all jobs",
                       f"{name}: {[r['BillableSeconds'] for r in rows]}, jobs {billed}")
        self.bad.check({j for r in rows for j in r["TrainingJobs"]} == {j["TrainingJobName"] for j in jobs},
                       "export has the training jobs of the list", f"{name}: {rows}")

    def run(self):
        try:
            if self.plan["local"]:
                self.run_locally()
                left = processes(self.journal)
                self.bad.check(not left, "no process survives `hyperband run`", left)
                self.serve()
                self.sample()
            else:
                self.serve()
                self.drive()
            if self.server.poll() is None:
                self.finish()
        except Exception as error:  # a fault of this tester or of an answer: show it like a broken promise
            import traceback
            self.bad.add("the answers have the documented form", traceback.format_exc()[-1200:] + repr(error))
        finally:
            if self.server and self.server.poll() is None:
                self.server.kill()
                self.server.wait()
            if self.server and self.server.stdout:
                self.server.stdout.close()
            for process in processes(self.journal):
                try:
                    os.kill(process["pid"], signal.SIGKILL)
                except OSError:
                    pass
        return self.bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    parser.add_argument("--seeds", required=True, help="A..B: the seeds A to B-1")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no further seed after this time")
    parser.add_argument("--keep", action="store_true", help="keep the folders of seeds that hold, too")
    parser.add_argument("--dir", default=None, help="where the folders are made")
    options = parser.parse_args()
    first, last = map(int, options.seeds.split(".."))
    begun, failed = time.monotonic(), 0
    for seed in range(first, last):
        if time.monotonic() - begun > options.seconds:
            break
        folder = tempfile.mkdtemp(prefix=f"seed-{seed}-", dir=options.dir)
        started = time.monotonic()
        scenario = Scenario(os.path.abspath(options.binary), seed, folder)
        bad = scenario.run()
        jobs = sum(len(h.jobs) for h in scenario.histories.values())
        print(f"seed {seed}: {'local' if scenario.plan['local'] else 'http'}, {len(scenario.histories)} tunings, {jobs} jobs, "
              f"{'crashed, ' if scenario.crashed else ''}{time.monotonic() - started:.0f} s, slowest answer "
              f"{scenario.slowest:.2f} s: {'BROKEN' if bad else 'holds'}" + (f", see {folder}" if bad else ""), flush=True)
        for promise, seen in bad:
            print(f"  {promise}\n    {seen}", flush=True)
        failed += bool(bad)
        if not bad and not options.keep:
            shutil.rmtree(folder, ignore_errors=True)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
