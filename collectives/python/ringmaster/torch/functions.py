"""Broadcasts of whole models, optimizer states and objects."""

import torch

from ringmaster import _core
from ringmaster._objects import (allgather_object, broadcast_made,
                                 broadcast_object as _broadcast_object)
from ringmaster._requests import full_name
from ringmaster.process_sets import global_process_set
from ringmaster.torch.arguments import check_has_state
from ringmaster.torch.devices import to_host
from ringmaster.torch.handles import synchronize
from ringmaster.torch.starting import start_broadcast

__all__ = ["allgather_object", "broadcast_object", "broadcast_optimizer_state",
           "broadcast_parameters"]


def broadcast_parameters(params, root_rank=0, process_set=global_process_set):
    """Makes the parameters of all ranks the root's, in place.

    `params`: a state_dict(), named_parameters(), or an iterable of tensors, which need the same
    order on all ranks. What is no tensor stays as it is. ValueError: `params` is none of these. A
    joiner gets them with the rest of its state when it enters the world: nothing is sent for it.
    """
    named = _named(params)
    if _core.is_joining():
        return
    root = _core.worker_at(root_rank)  # one for all: never some from one worker, some from another
    handles = [start_broadcast(tensor, root, full_name("parameters", name, process_set),
                               process_set)
               for name, tensor in named if isinstance(tensor, torch.Tensor)]
    for handle in handles:
        synchronize(handle)


def _named(params):
    """[(name, value)] in the same order on all ranks."""
    if hasattr(params, "items"):
        return sorted(params.items(), key=lambda item: item[0])
    try:
        params = list(params)
    except TypeError:
        raise ValueError("params: is a %s, must be a state_dict(), named_parameters() or a list of "
                         "tensors" % type(params).__name__) from None
    if all(isinstance(entry, tuple) and len(entry) == 2 for entry in params):
        return sorted(params, key=lambda item: item[0])
    if not all(isinstance(entry, torch.Tensor) for entry in params):
        raise ValueError(
            "params: has entries that are neither tensors nor pairs of name and tensor")
    return [(str(index), tensor) for index, tensor in enumerate(params)]


def broadcast_object(obj, root_rank=0, name=None, process_set=global_process_set):
    """The root's object on every rank; it must be picklable.

    A joiner gets its own back: state comes as it enters.
    """
    return obj if _core.is_joining() else _broadcast_object(obj, root_rank, name, process_set)


def broadcast_optimizer_state(optimizer, root_rank=0, model=None, process_set=global_process_set):
    """Makes the optimizer's state (momentum, learning rate, ...) of all ranks the root's.

    `model` is for Horovod's scripts. Optimizers of every kind are taken, also torch.optim.LBFGS.
    ValueError: `optimizer` is none.
    """
    del model
    check_has_state("optimizer", optimizer, "an optimizer")
    if _core.is_joining():
        return
    name = full_name("optimizer", "state", process_set).decode()
    state, is_root = broadcast_made(lambda: to_host(optimizer.state_dict()), root_rank, name,
                                    process_set)
    if not is_root:
        optimizer.load_state_dict(state)
