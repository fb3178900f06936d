"""The asynchronous parameter server and its workers.

The server has the parameters. A worker pushes the gradient of a mini-batch and gets the newest parameters. The server
applies each gradient when it arrives, even if it has applied others since it sent the parameters. So with n workers a
gradient is n - 1 updates old on average, at any speed of the workers.

A worker waits for the others in only one case: when it is LEAD_MAX mini-batches ahead of the slowest worker. The server
then delays its push until the slowest worker pushes again. Instances of one type have about equal speed. But if the
hosts of several jobs share a few cores, the operating system suspends some of them. Without this bound a gradient was
2,572 updates late.

Assumes that every worker belongs to this job and attempt (it has the token). Must never wait for a worker without a
limit, continue after the loss of a worker, or apply a gradient without checking its length and version.
"""

import json
import math
import selectors
import socket
import time

import numpy as np

import frames
import network

JOIN_SECONDS = 60
# A mini-batch takes milliseconds. This is also the longest suspension of a host.
SILENCE_SECONDS = 60
LEAVE_SECONDS = 10
LEAD_MAX = 4
STRANGERS_MAX = 64


class HostLost(Exception):
    """Another host ended, was silent for too long, or reported a failure."""


class Training:
    """The state of the first host: parameters, velocity, progress. Calls `epoch_done(self)` after each epoch."""

    def __init__(self, parameters, velocity, epoch, epochs, learning_rate, momentum, epoch_done):
        self.parameters, self.velocity = parameters, velocity
        self.epoch, self.epochs = epoch, epochs
        self.learning_rate, self.momentum = learning_rate, momentum
        self.epoch_done = epoch_done
        self.updates_per_epoch = None
        self.version = 0
        self._begin_epoch()

    def _begin_epoch(self):
        self.losses, self.ages = [], []

    @property
    def finished(self):
        return self.epoch >= self.epochs

    def apply(self, gradient, loss, version):
        """Applies a gradient that was computed with the parameters of `version`."""
        network.step(self.parameters, self.velocity, gradient, self.learning_rate, self.momentum)
        self.losses.append(loss)
        self.ages.append(self.version - version)
        self.version += 1
        if len(self.losses) == self.updates_per_epoch:
            self.epoch += 1
            self.epoch_done(self)
            self._begin_epoch()

    def train_loss(self):
        return math.fsum(self.losses) / len(self.losses) if np.all(np.isfinite(self.losses)) else math.nan


def train_alone(training, net, images, labels, settings):
    """Trains on one host, without server and connections. No gradient is stale."""
    training.updates_per_epoch = network.batches_per_pass(len(labels), settings["mini_batch"])
    gradient = np.empty(net.size, np.float32)
    batches = network.mini_batches(len(labels), settings["mini_batch"], settings["seed"], 0, training.epoch)
    while not training.finished:
        batch = next(batches)
        loss = net.gradient(training.parameters, images[batch], labels[batch], settings["weight_decay"], gradient)
        training.apply(gradient, loss, training.version)


class Peer:
    """A connection of the server."""

    def __init__(self, link, size):
        self.link, self.reader = link, frames.Reader(size)
        self.rank = self.sent_version = None
        self.pushed = 0
        self.push = None
        self.is_notified = False
        self.last_received = time.monotonic()


class Server:
    """Serves a job on one thread. Ends when all workers know that the training has ended."""

    def __init__(self, listener, training, hosts, token, net_size, mini_batch):
        self.listener, self.training, self.hosts = listener, training, hosts
        self.token, self.net_size, self.mini_batch = token, net_size, mini_batch
        self.peers, self.rows = {}, {}
        self.strangers, self.waiting = set(), []
        self.selector = selectors.DefaultSelector()
        listener.setblocking(False)
        self.selector.register(listener, selectors.EVENT_READ)

    def serve(self):
        started, finished_at = time.monotonic(), None
        while not (self.training.finished and self._all_notified()):
            for key, _ in self.selector.select(timeout=1):
                if key.fileobj is self.listener:
                    self._accept()
                else:
                    self._read(key.data)
            now = time.monotonic()
            if not self._all_joined():
                if now - started > JOIN_SECONDS:
                    missing = ", ".join(h for rank, h in enumerate(self.hosts) if rank not in self.peers)
                    raise HostLost(f"{missing} did not join within {JOIN_SECONDS} s")
            elif self.training.finished:
                finished_at = finished_at or now
                if now - finished_at > LEAVE_SECONDS:
                    return  # The training is complete and saved. A slow worker is no failure.
            else:
                self._find_silent(now)

    def close(self):
        for peer in [*self.peers.values(), *self.strangers]:
            peer.link.close()
        self.selector.close()

    def _all_joined(self):
        return len(self.rows) == len(self.hosts)

    def _all_notified(self):
        return self._all_joined() and all(peer.is_notified for peer in self.peers.values())

    def _find_silent(self, now):
        for rank, peer in self.peers.items():
            if peer.push is None and now - peer.last_received > SILENCE_SECONDS:
                raise HostLost(f"{self.hosts[rank]} sent nothing for {SILENCE_SECONDS} s")

    def _accept(self):
        link, _ = self.listener.accept()
        if len(self.strangers) >= STRANGERS_MAX:
            link.close()
            return
        # The timeout is for sending: a worker reads its parameters at once.
        link.settimeout(SILENCE_SECONDS)
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer = Peer(link, self.net_size)
        self.strangers.add(peer)
        self.selector.register(link, selectors.EVENT_READ, peer)

    def _read(self, peer):
        try:
            piece = peer.link.recv(frames.RECEIVE_BYTES)
            if piece:
                peer.last_received = time.monotonic()
                peer.reader.feed(piece)
                while (whole := peer.reader.next()) is not None:
                    self._handle(peer, *whole)
                return
            reason = "ended before the end of the training"
        except frames.BadFrame as error:
            reason = f"sent {error}"
        except OSError as error:
            reason = f"was lost: {error}"
        self._gone(peer, reason)

    def _gone(self, peer, reason):
        self.selector.unregister(peer.link)
        peer.link.close()
        if peer.rank is None:
            self.strangers.discard(peer)
        elif self.training.finished:
            peer.is_notified = True
        else:
            raise HostLost(f"{self.hosts[peer.rank]} {reason}")

    def _handle(self, peer, kind, body):
        if peer.rank is None:
            self._welcome(peer, kind, body)
        elif kind == frames.GRADIENT:
            (version, loss), gradient = frames.vector(body, frames.GRADIENT_HEAD)
            if peer.push is not None or version != peer.sent_version:
                raise frames.BadFrame(f"an unexpected gradient of version {version}")
            peer.push = (gradient, loss, version)
            self.waiting.append(peer)
            self._apply_waiting()
        elif kind == frames.FAILED:
            raise HostLost(f"{self.hosts[peer.rank]} failed: {body.decode(errors='replace')}")
        else:
            raise frames.BadFrame(f"a frame of kind {kind}, which workers must not send")

    def _welcome(self, peer, kind, body):
        """Makes an unknown connection the worker of a rank. Starts the training when all workers have joined."""
        try:
            hello = json.loads(body) if kind == frames.HELLO else {}
            rank, rows, size = int(hello["rank"]), int(hello["rows"]), int(hello["size"])
        except (ValueError, TypeError, KeyError) as error:
            raise frames.BadFrame("an invalid HELLO frame") from error
        if hello.get("token") != self.token or rank in self.peers or not 0 <= rank < len(self.hosts) or rows < 1:
            raise frames.BadFrame("the HELLO frame of another job")
        if size != self.net_size:
            raise HostLost(f"{self.hosts[rank]} trains a network of {size} parameters, expected {self.net_size}")
        self.strangers.discard(peer)
        peer.rank, self.peers[rank], self.rows[rank] = rank, peer, rows
        if self._all_joined():
            # An epoch has the updates of all workers for all their rows.
            passes = (network.batches_per_pass(rows, self.mini_batch) for rows in self.rows.values())
            self.training.updates_per_epoch = sum(passes)
            for other in self.peers.values():
                self._answer(other)

    def _apply_waiting(self):
        """Applies and answers pushes in order of arrival, except those of workers that must wait for the slowest."""
        while (peer := next(filter(self._may_apply, self.waiting), None)) is not None:
            self.waiting.remove(peer)
            if not self.training.finished:
                self.training.apply(*peer.push)
            peer.push, peer.pushed = None, peer.pushed + 1
            self._answer(peer)

    def _may_apply(self, peer):
        slowest = min(other.pushed for other in self.peers.values())
        return self.training.finished or peer.pushed < slowest + LEAD_MAX

    def _answer(self, peer):
        training = self.training
        peer.last_received = time.monotonic()
        if training.finished:
            peer.is_notified = True
            answer = frames.frame(frames.DONE)
        else:
            peer.sent_version = training.version
            answer = frames.parameters_frame(training.version, training.epoch, training.parameters)
        try:
            peer.link.sendall(answer)
        except OSError as error:
            if not training.finished:
                raise HostLost(f"{self.hosts[peer.rank]} was lost: {error}") from error


def work(link, net, images, labels, rank, token, settings):
    """Runs a worker: pushes gradients of its own rows until the server ends the training."""
    link.settimeout(JOIN_SECONDS + SILENCE_SECONDS)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    reader, gradient, batches = frames.Reader(net.size), np.empty(net.size, np.float32), None
    hello = {"token": token, "rank": rank, "rows": len(labels), "size": net.size}
    link.sendall(frames.frame(frames.HELLO, json.dumps(hello).encode()))
    while True:
        kind, body = frames.receive(link, reader)
        if kind == frames.DONE:
            return
        if kind != frames.PARAMETERS:
            raise frames.BadFrame(f"a frame of kind {kind}, which the server must not send")
        (version, epoch), parameters = frames.vector(body, frames.PARAMETERS_HEAD)
        if batches is None:
            batches = network.mini_batches(len(labels), settings["mini_batch"], settings["seed"], rank, epoch)
        batch = next(batches)
        loss = net.gradient(parameters, images[batch], labels[batch], settings["weight_decay"], gradient)
        link.sendall(frames.gradient_frame(version, loss, gradient))
