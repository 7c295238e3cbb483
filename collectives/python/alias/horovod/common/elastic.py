"""Horovod's name for what is elastic in all frameworks."""

from ringmaster import elastic as _elastic
from ringmaster.elastic import ObjectState, State

__all__ = ["ObjectState", "State", "run_fn"]


def run_fn(func, reset):
    """ringmaster.elastic.run(func). `reset` is not needed, and not used."""
    del reset
    return _elastic.run(func)
