"""A host of a distributed XGBoost training job, under the contract of a SageMaker training container.

Runs once per host. Reads its shard of the `train` channel and all of `validation`. Trains with the other hosts through
XGBoost's collective; the first host runs the tracker. The first host prints a metric line and writes a checkpoint after
each round. After a restart the job continues from the newest checkpoint.

Assumes CSV without header, label first, and a checkpoint folder that all hosts and attempts share. Must never write a
checkpoint, a model or a metric line on any host except the first. Must never wait without a limit for a host: so
dmlc_timeout is never 0, and a failure in the collective ends the process at once, because XGBoost's finalize() hangs
if the tracker's host is dead.
Exit codes: 0 trained, or stopped by SIGTERM; 1 invalid hyperparameters or data; 3 other hosts were lost.
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

# Before the import of numpy and xgboost: every thread inherits the blocked SIGTERM, so only the waiting thread receives
# it. A Python signal handler would not run while the main thread is in a collective operation.
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
# A dozen of these processes may share two cores, and OpenMP would start a thread per core in each process.
os.environ.setdefault("OMP_NUM_THREADS", "1")

JOIN_SECONDS = 60
COLLECTIVE_SECONDS = 60
FINALIZE_SECONDS = 10
# The ports of tracker and lifeline. In containers every host has its own network, so fixed ports need no rendezvous.
CONTAINER_PORTS = (9099, 9100)
CHECKPOINTS_KEPT = 2


class BadJob(Exception):
    """An invalid job. The message is for the user."""


# name -> (type, least, greatest, whether the least value is allowed)
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
# XGBoost has no distributed `exact`. One host has the same limit, so that cluster sizes are comparable.
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
    """The host of this process: its rank, folders and peers."""

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
            raise BadJob(f"invalid SM_CURRENT_HOST {current!r}: expected one of SM_HOSTS {hosts}")
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
    """Returns XGBoost's parameters and the number of rounds. Raises BadJob with every invalid value."""
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
            continue  # SageMaker's own, such as _tuning_objective_metric
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
            wrong.append(f"unknown {name}: expected one of {', '.join(sorted([*NUMBERS, *CHOICES]))}")
    if "num_round" not in params:
        wrong.append("num_round is missing")
    if wrong:
        raise BadJob("hyperparameters: " + "; ".join(wrong))
    return params, params.pop("num_round")


def read_channel(folder):
    """Returns (features, labels) of all CSV files of a channel, in the order of their names."""
    import numpy as np

    files = sorted(folder.glob("*.csv"))
    if not files:
        raise BadJob(f"no .csv file in {folder}: with ShardedByS3Key every host needs at least one file")
    try:
        rows = np.concatenate([np.loadtxt(f, delimiter=",", dtype=np.float32, ndmin=2) for f in files])
    except ValueError as error:
        raise BadJob(f"{folder} is not numeric CSV without a header: {error}") from error
    if rows.size == 0 or rows.shape[1] < 2:
        raise BadJob(f"{folder} has no rows of a label and features")
    return rows[:, 1:], rows[:, 0]


def checkpoints_newest_first(folder):
    found = {int(m[1]): f for f in folder.glob("r*.ubj") if (m := re.fullmatch(r"r(\d+)\.ubj", f.name))}
    return [found[rounds] for rounds in sorted(found, reverse=True)]


def save_checkpoint(booster, folder):
    """Writes a checkpoint: one file, complete or absent, named by its rounds. Keeps two in case one is damaged."""
    final = folder / f"r{booster.num_boosted_rounds():05d}.ubj"
    unfinished = folder / "unfinished.ubj"
    booster.save_model(unfinished)
    os.replace(unfinished, final)
    for old in checkpoints_newest_first(folder)[CHECKPOINTS_KEPT:]:
        old.unlink(missing_ok=True)


def load_newest(params, folder):
    """Returns the bytes of the newest readable checkpoint, empty without one."""
    import xgboost

    for file in checkpoints_newest_first(folder):
        try:
            content = file.read_bytes()
            xgboost.Booster(params, model_file=bytearray(content))
            return content
        except (OSError, xgboost.core.XGBoostError) as error:
            print(f"checkpoint {file.name} is unreadable, trying an older one: {error}", flush=True)
    return b""


def save_model_from_checkpoint(host):
    """Copies the newest checkpoint as the model. The format is the same, and XGBoost may be in the middle of a round."""
    host.model.mkdir(parents=True, exist_ok=True)
    for file in checkpoints_newest_first(host.checkpoints):
        try:
            shutil.copyfile(file, host.model / "unfinished")
            os.replace(host.model / "unfinished", host.model / "xgboost-model")
            return
        except FileNotFoundError:
            continue  # The main thread deleted it. A newer one exists.


def exit_on_sigterm(host):
    """Handles SIGTERM, which all hosts get at any moment. Every round has written its results to disk."""

    def wait():
        signal.sigwait({signal.SIGTERM})
        if host.rank == 0:
            save_model_from_checkpoint(host)
        sys.stdout.flush()
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


def fail(host_root, message, code):
    """Writes the reason to the file that SageMaker reads. Ends the process without clean-up, which may hang."""
    print(message, file=sys.stderr, flush=True)
    output = host_root / "output"
    output.mkdir(parents=True, exist_ok=True)
    (output / "failure").write_bytes(message.encode()[:1024])
    sys.stdout.flush()
    os._exit(code)


class Rendezvous:
    """Publishes the first host's two ports through files in the shared checkpoint folder.

    Each host asks with a random name and accepts only the answer to this name. So files of an earlier attempt, even with
    the same attempt ID, cannot give it a dead port.
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
    """A connection between the first host and each other host. Its only message is "done".

    The kernel closes it whenever a process dies. XGBoost alone does not always detect this: after a kill of the tracker's
    host, a host waited in a collective operation for more than 20 s.
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
            except ConnectionRefusedError:  # In containers the first host may start later.
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
        link.settimeout(None)
        self._watch(link)

    def done(self):
        """Allows peers to leave: all rounds are trained and the model is saved."""
        self.finished = True
        for link in self.links:
            with contextlib.suppress(OSError):
                link.sendall(b"d")

    def _watch(self, link):
        self.links.append(link)

        def wait():
            try:
                received = link.recv(1)
            except OSError:
                received = b""
            if not received and not self.finished:
                lost(self.host, ConnectionError("another host ended before the end of the training"))

        threading.Thread(target=wait, daemon=True).start()


def train(host, params, num_round, train_rows, validation_rows):
    """Trains the remaining rounds. Every host makes the same calls in the same order, because any call may be collective.

    Not xgboost.train(): after a resume it counts rounds from 0 again. Without column sampling, a resumed job gives the
    same model as an uninterrupted one, byte for byte. XGBoost's checkpoints do not have the state of the sampler, so with
    column sampling it starts again. seed_per_iteration and absolute rounds prevent it from repeating round 0's columns.
    """
    import xgboost
    from xgboost import collective

    params = {**params, "seed_per_iteration": True}
    done = load_newest(params, host.checkpoints) if host.rank == 0 else None
    if len(host.hosts) > 1:
        # All hosts use the bytes of the first host, so they continue at the same round.
        done = collective.broadcast(done, 0)
    training = xgboost.DMatrix(*train_rows, nthread=params["nthread"])
    validation = xgboost.DMatrix(*validation_rows, nthread=params["nthread"])
    watched = [(training, "train"), (validation, "validation")]
    booster = xgboost.Booster(params, [training, validation], model_file=bytearray(done) if done else None)
    first = booster.num_boosted_rounds()
    if first and host.rank == 0:
        print(f"continuing from the checkpoint of {first} rounds", flush=True)
    # An attempt without remaining rounds must still print its value to its own log.
    if first >= num_round:
        report(booster, watched, first - 1, host)
    for index in range(first, num_round):
        booster.update(training, index)
        report(booster, watched, index, host)
        if host.rank == 0:
            # The line comes first: an interruption before the checkpoint repeats it. The reverse order could lose it.
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
    ports = (0, 0) if local else CONTAINER_PORTS  # 0: the kernel selects a port.
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
        dmlc_task_id=f"{host.rank:05d}",  # Sorted as text. The order gives the rank.
        dmlc_retry=3 if local else 10,
        dmlc_timeout=COLLECTIVE_SECONDS,
    ):
        try:
            if local and host.rank == 0:
                rendezvous.close()
            train(host, *job)
        except Exception as error:  # An exception that leaves the context may hang in finalize().
            lost(host, error)
        lifeline.done()
        # The model is saved. A peer that dies now must not block this host.
        watchdog = threading.Timer(FINALIZE_SECONDS, os._exit, [0])
        watchdog.daemon = True
        watchdog.start()
    if host.rank == 0:
        # finalize() returns before the other hosts have left. They need the tracker until then.
        tracker.wait_for()
    sys.stdout.flush()
    os._exit(0)


def lost(host, error):
    # During a stop, a peer may end first, shortly before this host gets its SIGTERM.
    time.sleep(0.5)
    traceback.print_exception(error)
    lines = [line.strip() for line in str(error).splitlines()]
    text = " ".join(line for line in lines if line and not line.startswith(("[bt]", "Stack trace")))
    fail(host.root, f"training with the other hosts failed: {type(error).__name__}: {text}", 3)


def main():
    root = Path(os.environ.get("SM_ROOT", "/opt/ml"))
    try:
        host = Host.from_environment()
        exit_on_sigterm(host)
        params, num_round = read_hyperparameters(root)
        host.checkpoints.mkdir(parents=True, exist_ok=True)
        # Read before joining: in the collective, waiting hosts would reach its timeout.
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
