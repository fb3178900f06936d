"""Models how long a job takes on a cluster.

On a machine with fewer cores than hosts no clock shows what a cluster gains. The model: the CPU time of the slowest host,
measured, plus the network's time, computed for 10 Gbit/s and 0.1 ms a message. It ignores that a host may wait for others.
"""

# A network of 10 Gbit/s, and the time of a small message between two instances of one zone.
BYTES_PER_SECOND = 1.25e9
MESSAGE_SECONDS = 0.0001


def network_seconds(hosts, max_depth, bins):
    """Returns the network's time of a round: allreduce in a ring, one for each level of the tree.

    2 (n - 1) messages a level. The levels together move 2 (n - 1) / n times the histograms of a full tree: 16 bytes a
    bin, for one of each pair of siblings, so 2^(depth - 1) nodes. One host has no network.
    """
    moved = 2 * (hosts - 1) / hosts * 16 * bins * 2 ** (max_depth - 1)
    return max_depth * 2 * (hosts - 1) * MESSAGE_SECONDS + moved / BYTES_PER_SECOND
