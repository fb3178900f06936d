"""One host of a training job with an asynchronous parameter server, under the contract of a SageMaker container.

Started once per host. Every host is a worker: it reads its shard of the `train` channel and pushes gradients. The
first host is the parameter server too; it prints one metric line an epoch, writes a checkpoint after each epoch and
goes on from it. `epochs` is the total: a job that finds fewer epochs in its checkpoint trains those that are left.

Assumes: the checkpoint folder is one folder for all attempts of a trial (and, with SM_HOST_ADDRESSES, for all hosts).
Must never: write a checkpoint, model or metric line from any host but the first; wait without a limit for a host
that may be dead.
Exit code: 0 trained, or stopped by SIGTERM; 1 bad hyperparameters or data; 3 the other hosts were lost.
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

# Before numpy is imported: SIGTERM stays blocked in every thread, so that only the thread that waits for it sees it,
# whatever the others are doing. And a dozen of these processes may share two cores, where numpy would start a thread
# per core in each.
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

import numpy as np  # noqa: E402

import checkpoint  # noqa: E402
import frames  # noqa: E402
import network  # noqa: E402
import parameter_server  # noqa: E402
from parameter_server import HostLost  # noqa: E402

# Outside a local runner every host has its own network, and a fixed port needs no rendezvous.
CONTAINER_PORT = 9099
# The server and the first host's worker are threads of one process and take turns this often.
SWITCH_SECONDS = 0.0005


class BadJob(Exception):
    """The job cannot be trained as it was given; the message is for its user."""


# name -> (type, least, greatest, is the least value itself allowed)
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
        hosts = sorted(hosts, key=lambda name: (len(name), name))  # algo-10 comes after algo-9
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
    """Name -> number; BadJob names every value that is not allowed."""
    text = os.environ.get("SM_HPS")
    if text is None:
        try:
            text = (root / "input/config/hyperparameters.json").read_text()
        except FileNotFoundError:
            raise BadJob("no hyperparameters: SM_HPS is not set and hyperparameters.json does not exist") from None
    settings, wrong = dict(DEFAULTS), []
    for name, value in json.loads(text).items():
        if name.startswith(("_", "sagemaker_")):
            continue  # the services' own, such as _tuning_objective_metric
        if name not in NUMBERS:
            wrong.append(f"{name} is not known; known are {', '.join(NUMBERS)}")
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
    """The checkpoint is the model, and it is always whole."""
    host.model.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):  # stopped within the first epoch
        shutil.copyfile(host.checkpoints / checkpoint.NAME, host.model / "unfinished")
        os.replace(host.model / "unfinished", host.model / "model.npz")


def exit_on_sigterm(host):
    """All hosts get SIGTERM, in the middle of anything; what is worth keeping is on disk after every epoch."""

    def wait():
        signal.sigwait({signal.SIGTERM})
        if host.rank == 0:
            save_model_from_checkpoint(host)
        sys.stdout.flush()
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


def fail(root, message, code):
    """Leaves the reason where the service looks for it, and ends the process whatever its threads are doing."""
    print(message, file=sys.stderr, flush=True)
    output = root / "output"
    output.mkdir(parents=True, exist_ok=True)
    (output / "failure").write_bytes(message.encode()[:1024])
    sys.stdout.flush()
    os._exit(code)


def lost(host, error):
    # When the job is being stopped, a peer may have left first and our own SIGTERM is about to arrive.
    time.sleep(0.5)
    fail(host.root, f"training with the other hosts failed: {error}", 3)


def begin(host, net, settings):
    """The training as the newest checkpoint left it, or a new one. On the first host only."""
    images, labels = network.read_images(host.validation)

    def epoch_done(training):
        accuracy = net.accuracy(training.parameters, images, labels)
        line = f"epoch {training.epoch}: train-loss={training.train_loss():.4f} validation-accuracy={accuracy:.4f}"
        if len(host.hosts) > 1:
            line += f" staleness={np.mean(training.ages):.2f} most={max(training.ages)}"
        print(line, flush=True)
        # After the line: an interruption in between repeats the epoch, the other order would lose its line.
        found = checkpoint.Checkpoint(training.parameters, training.velocity, training.epoch, settings["seed"], line)
        checkpoint.save(host.checkpoints, found)

    try:
        found = checkpoint.load_for(host.checkpoints, net.size, settings["seed"])
    except checkpoint.BadCheckpoint as error:
        print(f"checkpoint not used, training starts afresh: {error}", file=sys.stderr, flush=True)
        found = None
    if found is None:
        parameters = net.initial(settings["seed"])
        found = checkpoint.Checkpoint(parameters, np.zeros_like(parameters), 0, settings["seed"], "")
    elif found.epoch < settings["epochs"]:
        print(f"going on from the checkpoint of {found.epoch} epochs", flush=True)
    else:
        # An attempt that finds all epochs done still has to report its value in its own log.
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
    """How the server's port becomes known: a file in the shared checkpoint folder, or a fixed port in containers.

    The file names the attempt, and its token is new for every server, so what an earlier attempt left misleads nobody.
    """

    def __init__(self, host):
        self.host, self.file = host, host.checkpoints / ".server.json"
        self.local = bool(host.addresses)

    def listen(self):
        """(listening socket, token)"""
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
        """(connection to the server, token); asks again until the server is there."""
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
            raise ValueError("the server of an earlier attempt")
        return place["port"], place["token"]

    def close(self):
        if self.local:
            self.file.unlink(missing_ok=True)


def work(host, link, token, net, rows, settings):
    """A worker to its end; HostLost when the server is gone. Tells the server why when it fails by itself."""
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
    """The first host of several: the server, and a worker on a thread that is treated as any other."""
    sys.setswitchinterval(SWITCH_SECONDS)
    training = begin(host, net, settings)
    rendezvous = Rendezvous(host)
    listener, token = rendezvous.listen()
    link = socket.create_connection(listener.getsockname() if host.addresses else ("127.0.0.1", CONTAINER_PORT))

    def own_worker():
        # Its failure reaches the server as any worker's does: by a frame, or by the end of the connection.
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
