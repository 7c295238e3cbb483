"""How many ranks' gradients are in a sum, told by the sum itself, in whatever type it travels.

bfloat16 holds integers exactly up to 256 and float16 up to 2,048, so a single 1 for each rank would
miscount larger worlds. The ranks share a vector instead: each has its 1 in the place of its rank
modulo the vector's length, and no place is counted beyond what the type holds. The length is the
same for all, whatever size of the world a rank knows at that moment.
"""

_PLACES = 64  # exact up to 16,384 ranks in bfloat16


def flags(rank):
    """What this rank adds to the sum."""
    vector = [0.0] * _PLACES
    vector[rank % _PLACES] = 1.0
    return vector


def count(sums):
    """How many ranks have added theirs."""
    return float(sum(round(value) for value in sums))
