"""What the hosts say to each other over TCP: frames of a kind, a length and a body.

HELLO      worker -> server  JSON: token, rank, rows, size of the network
PARAMETERS server -> worker  version, epoch, all parameters
GRADIENT   worker -> server  the version it was computed on, the loss, all gradients
DONE       server -> worker  the training is over
FAILED     worker -> server  why, as text

A version is the number of updates applied so far. Numbers in front are big-endian, vectors are little-endian 32-bit
floats. Must never: take memory for a body before its length is known to be allowed.
"""

import struct

import numpy as np

HELLO, PARAMETERS, GRADIENT, DONE, FAILED = range(1, 6)
HEAD = struct.Struct("!BI")
PARAMETERS_HEAD = struct.Struct("!QI")
GRADIENT_HEAD = struct.Struct("!Qd")
TEXT_BYTES_MAX = 1024
FLOAT = np.dtype("<f4")
RECEIVE_BYTES = 1 << 16


class BadFrame(Exception):
    """The other side does not speak this protocol."""


def limits(size):
    """Kind -> (least, greatest) length of a body between hosts whose network has `size` parameters."""
    vector = size * FLOAT.itemsize
    return {
        HELLO: (2, TEXT_BYTES_MAX),
        PARAMETERS: (PARAMETERS_HEAD.size + vector,) * 2,
        GRADIENT: (GRADIENT_HEAD.size + vector,) * 2,
        DONE: (0, 0),
        FAILED: (0, TEXT_BYTES_MAX),
    }


def frame(kind, *parts):
    parts = [part.data.cast("B") if isinstance(part, np.ndarray) else part for part in parts]
    return b"".join((HEAD.pack(kind, sum(map(len, parts))), *parts))


def parameters_frame(version, epoch, parameters):
    return frame(PARAMETERS, PARAMETERS_HEAD.pack(version, epoch), parameters.astype(FLOAT, copy=False))


def gradient_frame(version, loss, gradient):
    return frame(GRADIENT, GRADIENT_HEAD.pack(version, loss), gradient.astype(FLOAT, copy=False))


def vector(body, head):
    """(the numbers in front, the vector)"""
    return head.unpack_from(body), np.frombuffer(body, FLOAT, offset=head.size)


class Reader:
    """Puts frames together from whatever pieces the connection hands over."""

    def __init__(self, size):
        self.limits = limits(size)
        self.received = bytearray()

    def feed(self, piece):
        self.received += piece

    def next(self):
        """(kind, body) or None when there is no whole frame yet."""
        if len(self.received) < HEAD.size:
            return None
        kind, length = HEAD.unpack_from(self.received)
        if kind not in self.limits:
            raise BadFrame(f"a frame of the unknown kind {kind}")
        least, greatest = self.limits[kind]
        if not least <= length <= greatest:
            raise BadFrame(f"a frame of kind {kind} and {length} bytes, allowed are {least} to {greatest}")
        end = HEAD.size + length
        if len(self.received) < end:
            return None
        body = bytes(self.received[HEAD.size : end])
        del self.received[:end]
        return kind, body


def receive(link, reader):
    """The next frame of a blocking connection; ConnectionError when it is closed, TimeoutError by its time-out."""
    while (whole := reader.next()) is None:
        piece = link.recv(RECEIVE_BYTES)
        if not piece:
            raise ConnectionError("the connection was closed")
        reader.feed(piece)
    return whole
