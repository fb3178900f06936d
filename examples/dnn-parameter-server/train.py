"""A host of a training job with an asynchronous parameter server, under the contract of a SageMaker container.

Runs once per host. Every host is a worker: it reads its shard of the `train` channel and pushes gradients. The first
host is also the parameter server. It prints a metric line and writes a checkpoint after each epoch, and continues from
the checkpoint after a restart. `epochs` is the total: a job whose checkpoint has fewer epochs trains the remaining ones.

Assumes that all attempts of a trial (and, with SM_HOST_ADDRESSES, all hosts) share the checkpoint folder. Must never
write a checkpoint, a model or a metric line on any host except the first. Must never wait without a limit for a host.
Exit codes: 0 trained, or stopped by SIGTERM; 1 invalid hyperparameters or data; 3 other hosts were lost.
"""

import contextlib
import json
import os
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

# Before the import of numpy: every thread inherits the blocked SIGTERM, so only the waiting thread receives it. A dozen
# of these processes may share two cores, and numpy would start a thread per core in each process.
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

import numpy as np  # noqa: E402

import checkpoint  # noqa: E402
import frames  # noqa: E402
import network  # noqa: E402
import parameter_server  # noqa: E402
from parameter_server import HostLost  # noqa: E402

# In containers every host has its own network, so a fixed port needs no rendezvous.
CONTAINER_PORT = 9099
# How often the server and the first host's worker, threads of one process, take turns.
SWITCH_SECONDS = 0.0005


class BadJob(Exception):
    """An invalid job. The message is for the user."""


# name -> (type, least, greatest, whether the least value is allowed)
NUMBERS = {
    "epochs": (int, 1, 100_000, True),
    "learning_rate": (float, 0, 1000, False),
    "momentum": (float, 0, 0.9999, True),
    "mini_batch": (int, 1, 65_536, True),
    "hidden_units": (int, 1, 4096, True),
    "weight_decay": (float, 0, 1, True),
    "seed": (int, 0, 2**31 - 1, True),
}
REQUIRED = ("epochs", "learning_rate")
DEFAULTS = {"momentum": 0.9, "mini_batch": 32, "hidden_units": 64, "weight_decay": 0.0, "seed": 0}


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
        hosts = sorted(hosts, key=lambda name: (len(name), name))  # algo-10 after algo-9
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
    """Returns the numbers by name. Raises BadJob with every invalid value."""
    text = os.environ.get("SM_HPS")
    if text is None:
        try:
            text = (root / "input/config/hyperparameters.json").read_text()
        except FileNotFoundError:
            raise BadJob("no hyperparameters: SM_HPS is not set and hyperparameters.json does not exist") from None
    settings, wrong = dict(DEFAULTS), []
    for name, value in json.loads(text).items():
        if name.startswith(("_", "sagemaker_")):
            continue  # SageMaker's own, such as _tuning_objective_metric
        if name not in NUMBERS:
            wrong.append(f"unknown {name}: expected one of {', '.join(NUMBERS)}")
            continue
        kind, least, greatest, inclusive = NUMBERS[name]
        try:
            number = settings[name] = kind(str(value))
        except ValueError:
            wrong.append(f"{name}={value!r} is not {'a whole' if kind is int else 'a'} number")
            continue
        if not (least <= number if inclusive else least < number) or not number <= greatest:
            lower = f"{'at least' if inclusive else 'greater than'} {least}"
            wrong.append(f"{name}={value} must be {lower} and at most {greatest}")
    wrong += [f"{name} is missing" for name in REQUIRED if name not in settings]
    if wrong:
        raise BadJob("hyperparameters: " + "; ".join(wrong))
    return settings


def save_model_from_checkpoint(host):
    """Copies the checkpoint, which is always complete, as the model."""
    host.model.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):  # The job ended in its first epoch.
        shutil.copyfile(host.checkpoints / checkpoint.NAME, host.model / "unfinished")
        os.replace(host.model / "unfinished", host.model / "model.npz")


def exit_on_sigterm(host):
    """Handles SIGTERM, which all hosts get at any moment. Every epoch has written its results to disk."""

    def wait():
        signal.sigwait({signal.SIGTERM})
        if host.rank == 0:
            save_model_from_checkpoint(host)
        sys.stdout.flush()
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


def fail(root, message, code):
    """Writes the reason to the file that SageMaker reads. Ends the process at once, with all its threads."""
    print(message, file=sys.stderr, flush=True)
    output = root / "output"
    output.mkdir(parents=True, exist_ok=True)
    (output / "failure").write_bytes(message.encode()[:1024])
    sys.stdout.flush()
    os._exit(code)


def lost(host, error):
    # During a stop, a peer may end first, shortly before this host gets its SIGTERM.
    time.sleep(0.5)
    fail(host.root, f"training with the other hosts failed: {error}", 3)


def begin(host, net, settings):
    """Returns the training of the checkpoint, or a new one. Only the first host calls it."""
    images, labels = network.read_images(host.validation)

    def epoch_done(training):
        accuracy = net.accuracy(training.parameters, images, labels)
        line = f"epoch {training.epoch}: train-loss={training.train_loss():.4f} validation-accuracy={accuracy:.4f}"
        if len(host.hosts) > 1:
            line += f" staleness={np.mean(training.ages):.2f} most={max(training.ages)}"
        print(line, flush=True)
        # The line comes first: an interruption before the checkpoint repeats the epoch. The reverse order could lose the line.
        found = checkpoint.Checkpoint(training.parameters, training.velocity, training.epoch, settings["seed"], line)
        checkpoint.save(host.checkpoints, found)

    try:
        found = checkpoint.load_for(host.checkpoints, net.size, settings["seed"])
    except checkpoint.BadCheckpoint as error:
        print(f"checkpoint ignored, training starts again: {error}", file=sys.stderr, flush=True)
        found = None
    if found is None:
        parameters = net.initial(settings["seed"])
        found = checkpoint.Checkpoint(parameters, np.zeros_like(parameters), 0, settings["seed"], "")
    elif found.epoch < settings["epochs"]:
        print(f"continuing from the checkpoint of {found.epoch} epochs", flush=True)
    else:
        # An attempt without remaining epochs must still print its value to its own log.
        print(found.line, flush=True)
    return parameter_server.Training(
        found.parameters,
        found.velocity,
        found.epoch,
        settings["epochs"],
        settings["learning_rate"],
        settings["momentum"],
        epoch_done,
    )


class Rendezvous:
    """Publishes the server's port: in a file of the shared checkpoint folder. Containers use a fixed port instead.

    The file has the attempt and a token that is new for every server, so no host uses the file of an earlier attempt.
    """

    def __init__(self, host):
        self.host, self.file = host, host.checkpoints / ".server.json"
        self.local = bool(host.addresses)

    def listen(self):
        """Returns (listening socket, token)."""
        if not self.local:
            return socket.create_server(("", CONTAINER_PORT)), self.host.attempt
        token = secrets.token_hex(16)
        listener = socket.create_server((self.host.addresses[self.host.hosts[0]], 0))
        place = {"attempt": self.host.attempt, "port": listener.getsockname()[1], "token": token}
        unfinished = self.file.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(place))
        os.replace(unfinished, self.file)
        return listener, token

    def connect(self):
        """Returns (connection to the server, token). Retries until the server listens."""
        first_host, deadline = self.host.hosts[0], time.monotonic() + parameter_server.JOIN_SECONDS
        while True:
            try:
                port, token = self._place()
                address = self.host.addresses.get(first_host, first_host)
                return socket.create_connection((address, port), timeout=parameter_server.JOIN_SECONDS), token
            except (OSError, ValueError, KeyError) as error:
                if time.monotonic() > deadline:
                    seconds = parameter_server.JOIN_SECONDS
                    raise HostLost(f"{first_host} did not listen within {seconds} s: {error}") from error
            time.sleep(0.02 if self.local else 0.5)

    def _place(self):
        if not self.local:
            return CONTAINER_PORT, self.host.attempt
        place = json.loads(self.file.read_text())
        if place["attempt"] != self.host.attempt:
            raise ValueError("the file is of an earlier attempt")
        return place["port"], place["token"]

    def close(self):
        if self.local:
            self.file.unlink(missing_ok=True)


def work(host, link, token, net, rows, settings):
    """Runs a worker to its end. Raises HostLost if the server is lost. Reports its own failure to the server."""
    try:
        parameter_server.work(link, net, *rows, host.rank, token, settings)
    except (OSError, frames.BadFrame) as error:
        raise HostLost(f"{host.hosts[0]}, the parameter server, was lost: {error}") from error
    except Exception as error:
        traceback.print_exc()
        with contextlib.suppress(OSError):
            link.sendall(frames.frame(frames.FAILED, f"{type(error).__name__}: {error}".encode()[:1024]))
        raise
    finally:
        link.close()


def serve(host, net, rows, settings):
    """Runs the first of several hosts: the server, and an ordinary worker on a thread."""
    sys.setswitchinterval(SWITCH_SECONDS)
    training = begin(host, net, settings)
    rendezvous = Rendezvous(host)
    listener, token = rendezvous.listen()
    link = socket.create_connection(listener.getsockname() if host.addresses else ("127.0.0.1", CONTAINER_PORT))

    def own_worker():
        # The server learns of a failure like that of any worker: by a frame, or by the closed connection.
        with contextlib.suppress(Exception):
            work(host, link, token, net, rows, settings)

    server = parameter_server.Server(listener, training, host.hosts, token, net.size, settings["mini_batch"])
    threading.Thread(target=own_worker, daemon=True).start()
    try:
        server.serve()
        save_model_from_checkpoint(host)
    finally:
        server.close()
        rendezvous.close()


def train(host, settings):
    net = network.Network(settings["hidden_units"])
    rows = network.read_images(host.train)
    if len(host.hosts) == 1:
        parameter_server.train_alone(begin(host, net, settings), net, *rows, settings)
        save_model_from_checkpoint(host)
    elif host.rank == 0:
        serve(host, net, rows, settings)
    else:
        link, token = Rendezvous(host).connect()
        work(host, link, token, net, rows, settings)


def main():
    root = Path(os.environ.get("SM_ROOT", "/opt/ml"))
    try:
        host = Host.from_environment()
        exit_on_sigterm(host)
        settings = read_hyperparameters(root)
        host.checkpoints.mkdir(parents=True, exist_ok=True)
        train(host, settings)
    except (BadJob, network.BadData) as error:
        fail(root, str(error), 1)
    except HostLost as error:
        lost(host, error)
    except Exception as error:
        traceback.print_exc()
        fail(root, f"training failed: {type(error).__name__}: {error}", 1)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
