"""Tensors on GPUs: what the library is told of their memory. Nothing else here calls torch.cuda.

The library works on a stream of its own. It begins when the event that it is given has come: so it
reads what the current stream has made, and writes where that stream has nothing more to do. When it
says that an operation is done, the result stands in memory, and any stream may use it.
"""

import copy

import torch


def number_of(tensor):
    """rm_request.device: 0 for the host's memory, n for CUDA's device n - 1."""
    if tensor.device.type == "cpu":
        return 0
    index = tensor.device.index
    return (torch.cuda.current_device() if index is None else index) + 1


def event_now(tensor):
    """An event that comes when the stream that is current on the tensor's GPU has done what it was
    given so far. The library uses it until the operation is done: it is kept until then.
    """
    if torch.cuda.is_current_stream_capturing():
        raise ValueError("a collective can't be captured in a CUDA graph: it ends when other "
                         "processes have done their part, not on a stream of this one")
    event = torch.cuda.Event()
    event.record(torch.cuda.current_stream(tensor.device))
    return event


class _Bytes:
    """Memory on a GPU, as the packages of Python describe it to each other."""

    def __init__(self, address, count):
        self.__cuda_array_interface__ = {"shape": (count,), "typestr": "|u1", "version": 3,
                                         "data": (address, False)}


def copy_of(address, count, device):
    """A tensor with these bytes of the library's, on the same GPU. They may go when this returns.
    """
    copy = torch.as_tensor(_Bytes(address, count), device=device).clone()
    event_now(copy).synchronize()
    return copy


def to_host(value):
    """`value`, with the tensors that it holds in the host's memory: who gets them may have another
    GPU.
    """
    if isinstance(value, torch.Tensor):
        return value.detach().cpu() if value.device.type == "cuda" else value
    if type(value) in (list, tuple):
        return type(value)(to_host(entry) for entry in value)
    if isinstance(value, dict):
        made = copy.copy(value)  # with what a module's state_dict() says of its versions
        for key, entry in value.items():
            made[key] = to_host(entry)
        return made
    return value
