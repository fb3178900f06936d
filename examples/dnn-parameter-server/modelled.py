"""Models how long a job takes on a cluster.

On a machine with fewer cores than hosts no clock shows what a cluster gains. The model: the CPU time of the slowest host,
measured, plus the network's time, computed for 10 Gbit/s and 0.1 ms a message. It ignores that a host may wait for others.
"""

from pathlib import Path

import numpy as np

import network

# A network of 10 Gbit/s, and the time of a small message between two instances of one zone.
BYTES_PER_SECOND = 1.25e9
MESSAGE_SECONDS = 0.0001


def rows(data):
    return sum(len(np.load(file, mmap_mode="r")) for file in (Path(data) / "train").iterdir())


def network_seconds(hosts, rows, mini_batch, hidden_units):
    """Returns the network's time of an epoch: each mini-batch moves its gradient and the parameters, 4 bytes a number.

    A worker waits for both, and for 2 messages. The server's link carries those of all workers in each direction. The
    slower of both counts. One host has no network.
    """
    if hosts == 1:
        return 0.0
    size = 4 * network.Network(hidden_units).size
    worker = 2 * MESSAGE_SECONDS + 2 * size / BYTES_PER_SECOND
    return rows / mini_batch * max(worker / hosts, size / BYTES_PER_SECOND)
