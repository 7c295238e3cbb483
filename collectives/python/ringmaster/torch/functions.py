"""Broadcasts of whole models, optimizer states and objects."""

import torch

from ringmaster import _core
from ringmaster._objects import allgather_object, broadcast_object as _broadcast_object
from ringmaster.torch.operations import broadcast_async_, synchronize

__all__ = ["allgather_object", "broadcast_object", "broadcast_optimizer_state",
           "broadcast_parameters"]


def broadcast_parameters(params, root_rank=0):
    """Makes the parameters of all ranks the root's. `params`: state_dict() or named_parameters().

    A joiner gets them with the rest of its state when it enters the world: nothing is sent for it.
    """
    items = sorted(params.items() if hasattr(params, "items") else params)
    if _core.is_joining():
        return
    tensors = [(name, tensor) for name, tensor in items if isinstance(tensor, torch.Tensor)]
    handles = []
    for name, tensor in tensors:
        data = tensor.detach()
        packed = data if data.is_contiguous() and data.dtype != torch.bool else \
            (data.to(torch.uint8) if data.dtype == torch.bool else data.contiguous())
        handles.append((data, packed, broadcast_async_(packed, root_rank, "parameters." + name)))
    for data, packed, handle in handles:
        synchronize(handle)
        if packed is not data:
            data.copy_(packed)


def broadcast_object(value, root_rank=0, name=None):
    """The root's object on every rank. A joiner gets its own back: state comes as it enters."""
    return value if _core.is_joining() else _broadcast_object(value, root_rank, name)


def broadcast_optimizer_state(optimizer, root_rank=0):
    """Makes the optimizer's state (momentum, learning rate, ...) of all ranks the root's."""
    if _core.is_joining():
        return
    state = optimizer.state_dict() if _core.rank() == root_rank else None
    state = _broadcast_object(state, root_rank, "optimizer.state")
    if _core.rank() != root_rank:
        optimizer.load_state_dict(state)
