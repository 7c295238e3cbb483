"""What the library is told of tensors: type, shape and memory.

Wrong tensors are a ValueError before anything is sent.
"""

import torch

from ringmaster._library import Request
from ringmaster._requests import described
from ringmaster.torch import devices

_DTYPES = {
    torch.uint8: 0, torch.int8: 1, torch.int32: 2, torch.int64: 3, torch.float16: 4,
    torch.bfloat16: 5, torch.float32: 6, torch.float64: 7, torch.bool: 8, torch.int16: 10
}
# Of later versions of PyTorch.
_DTYPES.update({getattr(torch, name): number for name, number in
                (("uint16", 9), ("uint32", 11), ("uint64", 12)) if hasattr(torch, name)})

DEVICES = ("cpu", "cuda")


def dtype_of(tensor):
    """The library's number for the tensor's type."""
    if not isinstance(tensor, torch.Tensor):
        raise ValueError("tensor: is a %s, must be a torch.Tensor" % type(tensor).__name__)
    if tensor.device.type not in DEVICES:
        raise ValueError("tensor: is on %s, must be on the CPU or on a GPU of CUDA" % tensor.device)
    if tensor.layout != torch.strided:
        raise ValueError("tensor: has layout %s, must be torch.strided; sparse_allreduce_async() "
                         "and DistributedOptimizer take sparse ones" % tensor.layout)
    if tensor.dtype not in _DTYPES:
        raise ValueError("tensor: has type %s, must be one of %s"
                         % (tensor.dtype, ", ".join(str(known) for known in _DTYPES)))
    return _DTYPES[tensor.dtype]


def dtype_of_rows(tensor, verb):
    dtype = dtype_of(tensor)
    if tensor.dim() == 0:
        raise ValueError("tensor: is a scalar, must have one dimension or more to be " + verb)
    return dtype


def packed(tensor):
    """The tensor's values where the library can read them: its own memory, or a contiguous copy."""
    data = tensor.detach()
    if data.is_neg():  # a view that says "minus what stands in memory"
        data = data.resolve_neg()
    return data.contiguous()


def check_writable(tensor):
    """Of a tensor that gets a result: ValueError if several of its elements are one in memory."""
    if any(size > 1 and stride == 0 for size, stride in zip(tensor.shape, tensor.stride())):
        raise ValueError("tensor: is expanded, so that several of its elements are one in memory; "
                         "it gets a result, so it must be a tensor of its own: tensor.clone()")


def like(tensor):
    """Room for a result of the tensor's shape. (empty_like would keep its strides.)"""
    return torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)


def put_back(data, tensor):
    """After an operation in place on `data`, which packed(tensor) had returned: the tensor."""
    if data.data_ptr() != tensor.data_ptr() or tensor.is_neg():
        tensor.detach().copy_(data)
    return tensor


def request_at_any_time(kind, name, tensor, dtype, process_set, **fields):
    """A request that names the tensor's memory, and not when its values are there."""
    shape = described(tuple(tensor.shape), dtype)
    return Request(kind, name, input=tensor.data_ptr(), shape=shape.shape,
                   dimensions=shape.dimensions, dtype=dtype, process_set=process_set.number(),
                   device=devices.number_of(tensor), **fields)


def request(kind, name, tensor, dtype, process_set, **fields):
    """To be made when all memory that it names is there: on a GPU it remembers the moment."""
    made = request_at_any_time(kind, name, tensor, dtype, process_set, **fields)
    if made.device:
        made.event = devices.event_now(tensor)  # lives as long as the request
        made.ready_event = made.event.cuda_event
    return made


def requests(kind, names, tensors, dtypes, process_set, outputs=None, **fields):
    """request() of each tensor, whose result comes into the one of `outputs`."""
    results = [tensor.data_ptr() for tensor in outputs] if outputs else [None] * len(tensors)
    first = tensors[0].device if tensors else None
    if any(tensor.device != first or first.type != "cpu" for tensor in tensors):
        return [request(kind, names[i], tensors[i], dtypes[i], process_set, output=results[i],
                        **fields)
                for i in range(len(tensors))]
    made = (Request * len(tensors))()  # costs less than to make each by itself
    same = Request(kind, None, process_set.number(), **fields)
    for i, tensor in enumerate(tensors):
        shape = described(tuple(tensor.shape), dtypes[i])
        made[i] = same
        one = made[i]
        one.name, one.input, one.output = names[i], tensor.data_ptr(), results[i]
        one.shape, one.dimensions, one.dtype = shape.shape, shape.dimensions, dtypes[i]
    return made
