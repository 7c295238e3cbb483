"""Horovod's name for ringmaster.tensorflow."""

from ringmaster.tensorflow import *  # noqa: F401, F403
from ringmaster.tensorflow import Sum, __all__, allreduce


def _allreduce(tensor, name=None, op=Sum, **options):
    """Horovod keeps it to itself, but scripts call it: allreduce() that adds up by default."""
    return allreduce(tensor, op=op, name=name, **options)
