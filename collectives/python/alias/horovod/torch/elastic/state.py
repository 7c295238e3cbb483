"""Horovod's name for the state of ringmaster.torch.elastic."""

from ringmaster.torch.elastic import ObjectState, State, TorchState

__all__ = ["ObjectState", "State", "TorchState"]
