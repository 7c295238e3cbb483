"""Horovod's name for ringmaster.sampler."""

from ringmaster.sampler import ElasticSampler

__all__ = ["ElasticSampler"]
