"""One host of a distributed XGBoost training job, under the contract of a SageMaker training container.

Started once per host. Reads its shard of the `train` channel and all of `validation`, trains with the other hosts by
XGBoost's own collective (the first host runs the tracker), prints one metric line a round on the first host, writes
a checkpoint after each round and goes on from the newest one.

Assumes: CSV without header, label first; the checkpoint folder is one folder for all hosts and all attempts.
Must never: write a checkpoint, model or metric line from any host but the first; wait without a limit for a host
that may be dead (so dmlc_timeout is never 0, and a failure inside the collective ends the process at once: XGBoost's
finalize() hangs when the tracker's host is gone).
Exit code: 0 trained, or stopped by SIGTERM; 1 bad hyperparameters or data; 3 the other hosts were lost.
"""

import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import socket
import sys
import threading
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

# Before numpy and xgboost are imported: SIGTERM stays blocked in every thread, so that only the thread that waits
# for it sees it. A Python signal handler would not run while the main thread is inside a collective operation.
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
# A dozen of these processes may share two cores, and each library would start a thread per core.
os.environ.setdefault("OMP_NUM_THREADS", "1")

JOIN_SECONDS = 60
COLLECTIVE_SECONDS = 60
FINALIZE_SECONDS = 10
# Outside a local runner every host has its own network, and fixed ports need no rendezvous: tracker, lifeline.
CONTAINER_PORTS = (9099, 9100)
CHECKPOINTS_KEPT = 2


class BadJob(Exception):
    """The job cannot be trained as it was given; the message is for its user."""


# name -> (type, least, greatest, is the least value itself allowed)
NUMBERS = {
    "num_round": (int, 1, 100_000, True),
    "eta": (float, 0, 1, True),
    "gamma": (float, 0, None, True),
    "alpha": (float, 0, None, True),
    "lambda": (float, 0, None, True),
    "min_child_weight": (float, 0, None, True),
    "max_depth": (int, 0, 64, True),
    "max_bin": (int, 2, 65_536, True),
    "subsample": (float, 0, 1, False),
    "colsample_bytree": (float, 0, 1, False),
    "colsample_bylevel": (float, 0, 1, False),
    "colsample_bynode": (float, 0, 1, False),
    "scale_pos_weight": (float, 0, None, True),
    "seed": (int, 0, 2**31 - 1, True),
    "nthread": (int, 1, 1024, True),
}
# XGBoost has no distributed `exact`; a single host is held to the same so that cluster sizes compare.
CHOICES = {
    "objective": {"binary:logistic"},
    "eval_metric": {"auc"},
    "tree_method": {"hist", "approx"},
}
DEFAULTS = {
    "objective": "binary:logistic",
    "eval_metric": "auc",
    "tree_method": "hist",
    "nthread": 1,
    "seed": 0,
}


@dataclass(frozen=True)
class Host:
    """Who and where this process is."""

    root: Path
    rank: int
    hosts: list
    addresses: dict
    train: Path
    validation: Path
    model: Path
    attempt: str

    @property
    def checkpoints(self):
        return self.root / "checkpoints"

    @staticmethod
    def from_environment():
        root = Path(os.environ.get("SM_ROOT", "/opt/ml"))
        try:
            resource = json.loads((root / "input/config/resourceconfig.json").read_text())
        except FileNotFoundError:
            resource = {}
        hosts = json.loads(os.environ.get("SM_HOSTS") or json.dumps(resource.get("hosts", ["algo-1"])))
        current = os.environ.get("SM_CURRENT_HOST") or resource.get("current_host", "algo-1")
        if current not in hosts:
            raise BadJob(f"SM_CURRENT_HOST is {current!r}, which is not one of SM_HOSTS {hosts}")
        hosts = sorted(hosts)
        return Host(
            root=root,
            rank=hosts.index(current),
            hosts=hosts,
            addresses=json.loads(os.environ.get("SM_HOST_ADDRESSES", "{}")),
            train=Path(os.environ.get("SM_CHANNEL_TRAIN", root / "input/data/train")),
            validation=Path(os.environ.get("SM_CHANNEL_VALIDATION", root / "input/data/validation")),
            model=Path(os.environ.get("SM_MODEL_DIR", root / "model")),
            attempt=os.environ.get("SM_ATTEMPT_ID") or os.environ.get("TRAINING_JOB_NAME", "job"),
        )


def read_hyperparameters(root):
    """XGBoost's parameters and the number of rounds, from strings; BadJob names every value that is not allowed."""
    text = os.environ.get("SM_HPS")
    if text is None:
        try:
            text = (root / "input/config/hyperparameters.json").read_text()
        except FileNotFoundError:
            raise BadJob("no hyperparameters: SM_HPS is not set and hyperparameters.json does not exist") from None
    params, wrong = dict(DEFAULTS), []
    for name, value in json.loads(text).items():
        value = str(value)
        if name.startswith(("_", "sagemaker_")):
            continue  # the services' own, such as _tuning_objective_metric
        if name in CHOICES:
            params[name] = value
            if value not in CHOICES[name]:
                wrong.append(f"{name}={value!r} is not one of {sorted(CHOICES[name])}")
        elif name in NUMBERS:
            kind, least, greatest, inclusive = NUMBERS[name]
            try:
                number = params[name] = kind(value)
            except ValueError:
                wrong.append(f"{name}={value!r} is not {'a whole' if kind is int else 'a'} number")
                continue
            above = number >= least if inclusive else number > least
            if not (above and number < float("inf") and (greatest is None or number <= greatest)):
                upper = "" if greatest is None else f" and at most {greatest}"
                wrong.append(f"{name}={value} must be {'at least' if inclusive else 'greater than'} {least}{upper}")
        else:
            wrong.append(f"{name} is not known; known are {', '.join(sorted([*NUMBERS, *CHOICES]))}")
    if "num_round" not in params:
        wrong.append("num_round is missing")
    if wrong:
        raise BadJob("hyperparameters: " + "; ".join(wrong))
    return params, params.pop("num_round")


def read_channel(folder):
    """(features, labels) of all CSV files of a channel, in the order of their names."""
    import numpy as np

    files = sorted(folder.glob("*.csv"))
    if not files:
        raise BadJob(f"no .csv file in {folder}: with ShardedByS3Key every host needs at least one file")
    try:
        rows = np.concatenate([np.loadtxt(f, delimiter=",", dtype=np.float32, ndmin=2) for f in files])
    except ValueError as error:
        raise BadJob(f"{folder} is not numeric CSV without a header: {error}") from error
    if rows.size == 0 or rows.shape[1] < 2:
        raise BadJob(f"{folder} holds no rows of a label and features")
    return rows[:, 1:], rows[:, 0]


def checkpoints_newest_first(folder):
    found = {int(m[1]): f for f in folder.glob("r*.ubj") if (m := re.fullmatch(r"r(\d+)\.ubj", f.name))}
    return [found[rounds] for rounds in sorted(found, reverse=True)]


def save_checkpoint(booster, folder):
    """One file, complete or absent, named by the rounds it holds. Two are kept in case one is damaged."""
    final = folder / f"r{booster.num_boosted_rounds():05d}.ubj"
    unfinished = folder / "unfinished.ubj"
    booster.save_model(unfinished)
    os.replace(unfinished, final)
    for old in checkpoints_newest_first(folder)[CHECKPOINTS_KEPT:]:
        old.unlink(missing_ok=True)


def load_newest(params, folder):
    """The newest readable checkpoint, as bytes; empty when there is none."""
    import xgboost

    for file in checkpoints_newest_first(folder):
        try:
            content = file.read_bytes()
            xgboost.Booster(params, model_file=bytearray(content))
            return content
        except (OSError, xgboost.core.XGBoostError) as error:
            print(f"checkpoint {file.name} is not readable, trying an older one: {error}", flush=True)
    return b""


def save_model_from_checkpoint(host):
    """The newest checkpoint is the model: the same format, and no XGBoost call while a round may be under way."""
    host.model.mkdir(parents=True, exist_ok=True)
    for file in checkpoints_newest_first(host.checkpoints):
        try:
            shutil.copyfile(file, host.model / "unfinished")
            os.replace(host.model / "unfinished", host.model / "xgboost-model")
            return
        except FileNotFoundError:
            continue  # pruned by the main thread in between; a newer one exists


def exit_on_sigterm(host):
    """All hosts get SIGTERM, in the middle of anything; what is worth keeping is on disk after every round."""

    def wait():
        signal.sigwait({signal.SIGTERM})
        if host.rank == 0:
            save_model_from_checkpoint(host)
        sys.stdout.flush()
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


def fail(host_root, message, code):
    """Leaves the reason where the service looks for it and ends the process without any clean-up that may hang."""
    print(message, file=sys.stderr, flush=True)
    output = host_root / "output"
    output.mkdir(parents=True, exist_ok=True)
    (output / "failure").write_bytes(message.encode()[:1024])
    sys.stdout.flush()
    os._exit(code)


class Rendezvous:
    """How the first host's two ports become known to the others: files in the shared checkpoint folder.

    Each host asks under a random name and takes only the answer to that name, so files left by an earlier attempt,
    even one with the same attempt id, cannot send it to a dead port.
    """

    def __init__(self, host):
        self.folder = host.checkpoints / (".rendezvous-" + re.sub(r"[^A-Za-z0-9_.-]", "_", host.attempt))
        self.folder.mkdir(parents=True, exist_ok=True)
        self.done = threading.Event()

    def answer_all(self, ports):
        for old in self.folder.parent.glob(".rendezvous-*"):
            if old != self.folder:
                shutil.rmtree(old, ignore_errors=True)

        def answer():
            while not self.done.wait(0.02):
                for request in self.folder.glob("join-*"):
                    reply = request.with_name(request.name.replace("join-", "ports-"))
                    if not reply.exists():
                        unfinished = reply.with_suffix(".tmp")
                        unfinished.write_text(json.dumps(ports))
                        os.replace(unfinished, reply)

        threading.Thread(target=answer, daemon=True).start()

    def ask(self, first_host):
        name = secrets.token_hex(8)
        (self.folder / f"join-{name}").touch()
        reply, deadline = self.folder / f"ports-{name}", time.monotonic() + JOIN_SECONDS
        while not reply.exists():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{first_host} did not start its tracker within {JOIN_SECONDS} s")
            time.sleep(0.02)
        return json.loads(reply.read_text())

    def close(self):
        self.done.set()
        shutil.rmtree(self.folder, ignore_errors=True)


class Lifeline:
    """One connection between the first host and each other, over which nothing is said but "done".

    The kernel closes it when a process dies, however it dies. XGBoost alone does not always notice: with the tracker's
    host killed, a host was seen waiting in a collective operation for more than 20 s.
    """

    def __init__(self, host):
        self.host = host
        self.links = []
        self.finished = False

    def listen(self, address, port):
        server = socket.create_server((address, port))

        def accept():
            for _ in self.host.hosts[1:]:
                self._watch(server.accept()[0])

        threading.Thread(target=accept, daemon=True).start()
        return server.getsockname()[1]

    def connect(self, address, port):
        deadline = time.monotonic() + JOIN_SECONDS
        while True:
            try:
                link = socket.create_connection((address, port), timeout=JOIN_SECONDS)
                break
            except ConnectionRefusedError:  # in containers, where the first host may start later
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
        link.settimeout(None)
        self._watch(link)

    def done(self):
        """From here on a peer may leave: the rounds are trained and the model is saved."""
        self.finished = True
        for link in self.links:
            with contextlib.suppress(OSError):
                link.sendall(b"d")

    def _watch(self, link):
        self.links.append(link)

        def wait():
            try:
                said = link.recv(1)
            except OSError:
                said = b""
            if not said and not self.finished:
                lost(self.host, ConnectionError("another host ended before the training was done"))

        threading.Thread(target=wait, daemon=True).start()


def train(host, params, num_round, train_rows, validation_rows):
    """The rounds that are left. Runs the same calls on every host, in the same order: each of them may be collective.

    Not xgboost.train(): that counts rounds from 0 again after a resume. Without column sampling a resumed job ends in
    the model of an unbroken one, byte for byte. With it the sampler starts anew, which XGBoost's checkpoints do not
    hold; seed_per_iteration and absolute rounds at least keep it from drawing the columns of round 0 once more.
    """
    import xgboost
    from xgboost import collective

    params = {**params, "seed_per_iteration": True}
    done = load_newest(params, host.checkpoints) if host.rank == 0 else None
    if len(host.hosts) > 1:
        # One host reads and the others take its bytes, so all of them agree on where to go on.
        done = collective.broadcast(done, 0)
    training = xgboost.DMatrix(*train_rows, nthread=params["nthread"])
    validation = xgboost.DMatrix(*validation_rows, nthread=params["nthread"])
    watched = [(training, "train"), (validation, "validation")]
    booster = xgboost.Booster(params, [training, validation], model_file=bytearray(done) if done else None)
    first = booster.num_boosted_rounds()
    if first and host.rank == 0:
        print(f"going on from the checkpoint of {first} rounds", flush=True)
    # At least one line: an attempt that finds all rounds done still has to report its value in its own log.
    if first >= num_round:
        report(booster, watched, first - 1, host)
    for index in range(first, num_round):
        booster.update(training, index)
        report(booster, watched, index, host)
        if host.rank == 0:
            # After the line: an interruption in between repeats the line, the other order would lose it.
            save_checkpoint(booster, host.checkpoints)
    if host.rank == 0:
        save_model_from_checkpoint(host)


def report(booster, watched, index, host):
    line = booster.eval_set(watched, index)
    if host.rank == 0:
        print(line, flush=True)


def train_together(host, job):
    from xgboost.collective import CommunicatorContext
    from xgboost.tracker import RabitTracker

    first_host = host.hosts[0]
    local = bool(host.addresses)
    address = host.addresses[first_host] if local else socket.gethostbyname(first_host)
    rendezvous = Rendezvous(host) if local else None
    lifeline = Lifeline(host)
    ports = (0, 0) if local else CONTAINER_PORTS  # 0: one that the kernel picks
    if host.rank == 0:
        tracker = RabitTracker(
            n_workers=len(host.hosts),
            host_ip=address,
            port=ports[0],
            sortby="task",
            timeout=JOIN_SECONDS,
        )
        tracker.start()
        ports = (tracker.worker_args()["dmlc_tracker_port"], lifeline.listen(address, ports[1]))
        if local:
            rendezvous.answer_all(ports)
    else:
        if local:
            ports = rendezvous.ask(first_host)
        lifeline.connect(address, ports[1])
    with CommunicatorContext(
        dmlc_communicator="rabit",
        dmlc_tracker_uri=address,
        dmlc_tracker_port=ports[0],
        dmlc_task_id=f"{host.rank:05d}",  # sorted as text, and the order is the rank
        dmlc_retry=3 if local else 10,
        dmlc_timeout=COLLECTIVE_SECONDS,
    ):
        try:
            if local and host.rank == 0:
                rendezvous.close()
            train(host, *job)
        except Exception as error:  # any: leaving the context by an exception may hang in finalize()
            lost(host, error)
        lifeline.done()
        # The work is done and saved; a peer that dies just now must not keep this host waiting.
        watchdog = threading.Timer(FINALIZE_SECONDS, os._exit, [0])
        watchdog.daemon = True
        watchdog.start()
    if host.rank == 0:
        # finalize() returns here before the other hosts have left; to free the tracker now would strand them.
        tracker.wait_for()
    sys.stdout.flush()
    os._exit(0)


def lost(host, error):
    # When the job is being stopped, a peer may have left first and our own SIGTERM is about to arrive.
    time.sleep(0.5)
    traceback.print_exception(error)
    lines = [line.strip() for line in str(error).splitlines()]
    said = " ".join(line for line in lines if line and not line.startswith(("[bt]", "Stack trace")))
    fail(host.root, f"training with the other hosts failed: {type(error).__name__}: {said}", 3)


def main():
    root = Path(os.environ.get("SM_ROOT", "/opt/ml"))
    try:
        host = Host.from_environment()
        exit_on_sigterm(host)
        params, num_round = read_hyperparameters(root)
        host.checkpoints.mkdir(parents=True, exist_ok=True)
        # Read before joining: hosts that wait for each other inside the collective run into its time-out.
        job = (params, num_round, read_channel(host.train), read_channel(host.validation))
    except BadJob as error:
        fail(root, str(error), 1)
    if len(host.hosts) == 1:
        try:
            train(host, *job)
        except Exception as error:
            traceback.print_exc()
            fail(root, f"training failed: {type(error).__name__}: {error}", 1)
    else:
        try:
            train_together(host, job)
        except Exception as error:
            lost(host, error)


if __name__ == "__main__":
    main()
