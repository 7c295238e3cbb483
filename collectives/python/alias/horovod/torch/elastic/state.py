"""Horovod's name for the state of ringmaster.torch.elastic."""

from ringmaster.torch.elastic import TorchState

__all__ = ["TorchState"]
