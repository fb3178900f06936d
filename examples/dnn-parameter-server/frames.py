"""The protocol of the hosts over TCP: frames of a kind, a length and a body.

HELLO      worker -> server  JSON: token, rank, rows, size of the network
PARAMETERS server -> worker  version, epoch, all parameters
GRADIENT   worker -> server  the version it was computed on, the loss, all gradients
DONE       server -> worker  the training has ended
FAILED     worker -> server  the reason, as text

A version is the number of applied updates. Numbers before a vector are big-endian. Vectors are little-endian 32-bit
floats. Must never allocate memory for a body before checking its length.
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
    """The peer violates this protocol."""


def limits(size):
    """Returns (least, greatest) body length by kind, for a network of `size` parameters."""
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
    """Returns (the numbers before the vector, the vector)."""
    return head.unpack_from(body), np.frombuffer(body, FLOAT, offset=head.size)


class Reader:
    """Assembles frames from the pieces that a connection delivers."""

    def __init__(self, size):
        self.limits = limits(size)
        self.received = bytearray()

    def feed(self, piece):
        self.received += piece

    def next(self):
        """Returns (kind, body), or None until a frame is complete."""
        if len(self.received) < HEAD.size:
            return None
        kind, length = HEAD.unpack_from(self.received)
        if kind not in self.limits:
            raise BadFrame(f"a frame of unknown kind {kind}")
        least, greatest = self.limits[kind]
        if not least <= length <= greatest:
            raise BadFrame(f"a frame of kind {kind} with {length} bytes, expected {least} to {greatest}")
        end = HEAD.size + length
        if len(self.received) < end:
            return None
        body = bytes(self.received[HEAD.size : end])
        del self.received[:end]
        return kind, body


def receive(link, reader):
    """Returns the next frame of a blocking connection. Raises ConnectionError if it is closed, TimeoutError at its timeout."""
    while (whole := reader.next()) is None:
        piece = link.recv(RECEIVE_BYTES)
        if not piece:
            raise ConnectionError("the connection was closed")
        reader.feed(piece)
    return whole
