"""Runs one training job without the controller: starts a command once per host under the training process contract.

For the jobs of the comparison and the tests. The program runs a job to its end, tests its model on the test images,
and prints the measurements as JSON. Neither training nor tuning uses the test images. Must never leave a process
running, even if the launcher is killed (the kernel then kills the hosts). Must never report success if a host failed.
"""

import argparse
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import checkpoint
import modelled
import network

PR_SET_PDEATHSIG = 1
METRIC = re.compile(r"^epoch (\d+): .*validation-accuracy=(\S+)(?: staleness=(\S+))?", re.MULTILINE)
# A host that lost its peers ends within this time. The launcher then stops the others.
PEER_SECONDS = 5
STOP_SECONDS = 5
_libc = ctypes.CDLL(None)


def die_with(parent):
    """Runs in the child before the command. The child dies with the launcher, even if the launcher is already dead."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


class Job:
    """An attempt of a job. Attempts with the same folder share its checkpoints."""

    def __init__(self, command, folder, data, instances, hyperparameters, attempt=1):
        self.folder = Path(folder).resolve()
        self.hosts = [f"algo-{n + 1}" for n in range(instances)]
        self.roots = {h: self.folder / f"attempt-{attempt}" / h for h in self.hosts}
        self.command, self.data = command, Path(data).resolve()
        self.hyperparameters = {k: str(v) for k, v in hyperparameters.items()}
        self.attempt = attempt
        self.processes = {}
        # The CPU time of each host that has ended.
        self.cpu_seconds = {}

    def __enter__(self):
        try:
            for index, host in enumerate(self.hosts):
                self._prepare(index, host)
            for host in self.hosts:
                self._start(host)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def _prepare(self, index, host):
        root = self.roots[host]
        config, train = root / "input/config", root / "input/data/train"
        for folder in (config, train, root / "model", root / "output", self.folder / "checkpoints"):
            folder.mkdir(parents=True, exist_ok=True)
        (root / "checkpoints").symlink_to(self.folder / "checkpoints")
        (root / "input/data/validation").symlink_to(self.data / "validation")
        # Like ShardedByS3Key: file i goes to host i mod n.
        for file in sorted((self.data / "train").iterdir())[index :: len(self.hosts)]:
            (train / file.name).symlink_to(file)
        (config / "hyperparameters.json").write_text(json.dumps(self.hyperparameters))
        (config / "resourceconfig.json").write_text(json.dumps({"current_host": host, "hosts": self.hosts}))

    def _start(self, host):
        root = self.roots[host]
        environment = {
            **os.environ,
            "SM_ROOT": str(root),
            "SM_HPS": json.dumps(self.hyperparameters),
            "SM_HOSTS": json.dumps(self.hosts),
            "SM_CURRENT_HOST": host,
            "SM_HOST_ADDRESSES": json.dumps({h: f"127.0.1.{n + 1}" for n, h in enumerate(self.hosts)}),
            "SM_NUM_GPUS": "0",
            "SM_CHANNEL_TRAIN": str(root / "input/data/train"),
            "SM_CHANNEL_VALIDATION": str(root / "input/data/validation"),
            "SM_MODEL_DIR": str(root / "model"),
            "TRAINING_JOB_NAME": self.folder.name,
            "SM_ATTEMPT_ID": f"{self.folder.name}-{self.attempt}",
        }
        parent = os.getpid()
        with open(root / "log", "wb") as log:
            # A new session: Ctrl-C reaches only the launcher, which then stops the hosts in order.
            self.processes[host] = subprocess.Popen(
                self.command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=lambda: die_with(parent),
            )

    def log(self, host="algo-1"):
        return (self.roots[host] / "log").read_text(errors="replace")

    def failure(self, host):
        file = self.roots[host] / "output/failure"
        return file.read_text(errors="replace") if file.exists() else None

    def curve(self):
        """Returns the validation accuracy by epoch, from the first host's log. The first value of an epoch counts."""
        values = {}
        for epoch, value, _ in METRIC.findall(self.log()):
            values.setdefault(int(epoch), float(value))
        return values

    def staleness(self):
        """Returns the mean age of the gradients, in updates. It is 0 on one host, whose log has no staleness."""
        ages = [float(age or 0) for _, _, age in METRIC.findall(self.log())]
        return sum(ages) / len(ages)

    def model(self):
        return checkpoint.load(self.roots["algo-1"] / "model/model.npz")

    def exit_codes(self):
        return {host: self._exit_code(host) for host in self.processes}

    def _exit_code(self, host):
        """Like `poll` of the process, but keeps its CPU time too."""
        process = self.processes[host]
        if process.returncode is None:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid != 0:
                process.returncode = os.waitstatus_to_exitcode(status)
                self.cpu_seconds[host] = usage.ru_utime + usage.ru_stime
        return process.returncode

    def wait(self, peer_seconds=PEER_SECONDS, limit=600):
        """Waits until every host has ended. Stops the others if a host fails. Returns whether all ended with code 0."""
        deadline = time.monotonic() + limit
        failed = False
        while None in (codes := self.exit_codes().values()):
            if not failed and any(code not in (None, 0) for code in codes):
                failed, deadline = True, time.monotonic() + peer_seconds
            if time.monotonic() > deadline:
                self.stop()
                break
            time.sleep(0.01)
        return all(code == 0 for code in self.exit_codes().values())

    def signal(self, number, hosts=None):
        for host in hosts or self.hosts:
            if host in self.processes and self._exit_code(host) is None:
                os.killpg(self.processes[host].pid, number)

    def stop(self):
        self.signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        while None in self.exit_codes().values() and time.monotonic() < deadline:
            time.sleep(0.01)
        self.signal(signal.SIGKILL)
        for process in self.processes.values():
            process.wait()


def test_accuracy(model, data):
    net = network.Network.of_size(model.parameters.size)
    return net.accuracy(model.parameters, *network.read_images(Path(data) / "test"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--instances", type=int, required=True)
    parser.add_argument("--data", type=Path, required=True, help="folder that prepare.py wrote")
    parser.add_argument("--folder", type=Path, required=True, help="new folder for the job's files")
    parser.add_argument("--hp", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    # SystemExit runs Job.__exit__, which the default action of SIGTERM skips.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    hyperparameters = dict(pair.split("=", 1) for pair in options.hp)
    try:
        with Job(options.command, options.folder, options.data, options.instances, hyperparameters) as job:
            ok = job.wait()
    except KeyboardInterrupt:
        sys.exit(130)
    if not ok:
        for host, code in job.exit_codes().items():
            reason = job.failure(host) or job.log(host)[-1000:]
            print(f"launch.py: {host} ended with code {code}: {reason.strip()}", file=sys.stderr)
        sys.exit(1)
    curve = job.curve()
    last = max(curve)
    sizes = [int(hyperparameters[name]) for name in ("mini_batch", "hidden_units")]
    communication = modelled.network_seconds(options.instances, modelled.rows(options.data), *sizes)
    result = {
        "instances": options.instances,
        "validation": curve[last],
        "test": round(test_accuracy(job.model(), options.data), 4),
        "epochs": last,
        "staleness": round(job.staleness(), 2),
        "modelled_seconds": round(max(job.cpu_seconds.values()) + last * communication, 3),
        "hyperparameters": job.hyperparameters,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
