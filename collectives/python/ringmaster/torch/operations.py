"""Collectives on tensors, synchronous and asynchronous.

A handle keeps the tensors alive until synchronize(). Wrong arguments raise ValueError before
anything is sent; what differs between ranks raises HorovodInternalError on every rank.
"""

from ctypes import POINTER, byref, c_size_t, c_uint64, c_void_p, memmove

import torch

from ringmaster import _core, _objects
from ringmaster.torch.compression import Compression

Sum, Average, Min, Max, Product = range(5)
_OPS = {Sum: "Sum", Average: "Average", Min: "Min", Max: "Max", Product: "Product"}

_DTYPES = {
    torch.uint8: 0, torch.int8: 1, torch.int32: 2, torch.int64: 3, torch.float16: 4,
    torch.bfloat16: 5, torch.float32: 6, torch.float64: 7
}


class Handle:
    """An operation in flight: what to wait for, what to keep alive, what the result is."""

    def __init__(self, inputs, finish):
        self.number = c_uint64()
        self._inputs = inputs
        self._finish = finish

    def done(self):
        return self.number.value == 0 or _core.library().rm_poll(self.number) != 0

    def wait(self):
        if self.number.value == 0:
            raise ValueError("handle: has been synchronized already")
        try:
            _objects.wait(self.number)
            return self._finish(self.number)
        finally:
            _core.library().rm_release(self.number)
            self.number, self._inputs = c_uint64(), None


def poll(handle):
    """True when synchronize(handle) would not block."""
    return handle.done()


def synchronize(handle):
    """Waits for an asynchronous operation and returns its result."""
    return handle.wait()


def _dtype_of(tensor, what="tensor"):
    if not isinstance(tensor, torch.Tensor):
        raise ValueError("%s: is a %s, must be a torch.Tensor" % (what, type(tensor).__name__))
    if tensor.device.type != "cpu":
        raise ValueError("%s: is on %s, must be on the CPU (there is no GPU data path yet)"
                         % (what, tensor.device))
    if tensor.layout != torch.strided or not tensor.is_contiguous():
        raise ValueError("%s: is not contiguous; pass tensor.contiguous()" % what)
    if tensor.dtype not in _DTYPES:
        raise ValueError("%s: has type %s, must be one of %s"
                         % (what, tensor.dtype, ", ".join(str(known) for known in _DTYPES)))
    return _DTYPES[tensor.dtype]


def _full_name(kind, name):
    return ("%s.%s" % (kind, name) if name else _core.auto_name(kind)).encode()


def _choose_op(op, average):
    if op is not None and average is not None:
        raise ValueError("average, op: both were given; op replaces average")
    if op is None:
        op = Average if average is None or average else Sum
    if op not in _OPS:
        raise ValueError("op: is %r, must be one of %s" % (op, ", ".join(_OPS.values())))
    return op


# ---- allreduce


def start_allreduce(source, target, name, op, prescale=1.0, postscale=1.0, result=None):
    """Reduces `source` into `target` (may be the same tensor). `name` is already complete."""
    dtype = _dtype_of(source)
    finish = (lambda _: target) if result is None else (lambda _: result())
    handle = Handle((source, target), finish)
    _core.call("rm_allreduce_async", name, source.data_ptr(), target.data_ptr(), source.numel(),
               dtype, op, float(prescale), float(postscale), byref(handle.number))
    return handle


def allreduce_async_(tensor, average=None, name=None, op=None, prescale_factor=1.0,
                     postscale_factor=1.0):
    """In place, asynchronous: the result stands in `tensor` after synchronize()."""
    data = tensor.detach() if isinstance(tensor, torch.Tensor) else tensor
    _dtype_of(data)
    return start_allreduce(data, data, _full_name("allreduce", name), _choose_op(op, average),
                           prescale_factor, postscale_factor, result=lambda: tensor)


def allreduce_async(tensor, average=None, name=None, op=None, prescale_factor=1.0,
                    postscale_factor=1.0):
    """Asynchronous; synchronize() returns a new tensor. Not differentiable."""
    op = _choose_op(op, average)
    _dtype_of(tensor)
    return start_allreduce(tensor.detach(), torch.empty_like(tensor, requires_grad=False),
                           _full_name("allreduce", name), op, prescale_factor, postscale_factor)


def allreduce(tensor, average=None, name=None, compression=Compression.none, op=None,
              prescale_factor=1.0, postscale_factor=1.0):
    """The average (or `op`) over all ranks, as a new tensor."""
    _dtype_of(tensor)
    compressed, context = compression.compress(tensor)
    handle = allreduce_async(compressed, average, name, op, prescale_factor, postscale_factor)
    return compression.decompress(synchronize(handle), context)


def allreduce_(tensor, average=None, name=None, op=None, prescale_factor=1.0,
               postscale_factor=1.0):
    """In place."""
    return synchronize(
        allreduce_async_(tensor, average, name, op, prescale_factor, postscale_factor))


def grouped_allreduce(tensors, average=None, name=None, op=None):
    """One allreduce for each tensor, all in flight together."""
    return _grouped(allreduce_async, tensors, average, name, op)


def grouped_allreduce_(tensors, average=None, name=None, op=None):
    """In place."""
    return _grouped(allreduce_async_, tensors, average, name, op)


def _grouped(start, tensors, average, name, op):
    for tensor in tensors:
        _dtype_of(tensor)  # all or none: nothing is sent if one of them is wrong
    handles = [start(tensor, average, "%s.%d" % (name, index) if name else None, op)
               for index, tensor in enumerate(tensors)]
    return [synchronize(handle) for handle in handles]


# ---- allgather


def allgather_async(tensor, name=None):
    """Ranks may differ in the first dimension; synchronize() returns all rows in rank order."""
    dtype = _dtype_of(tensor)
    if tensor.dim() == 0:
        raise ValueError("tensor: is a scalar, must have one dimension or more to be gathered")
    shape = tuple(tensor.shape[1:])
    row = 1
    for extent in shape:
        row *= extent
    data = tensor.detach()
    handle = Handle(data, lambda number: _gathered(number, shape, tensor.dtype))
    _core.call("rm_allgather_async", _full_name("allgather", name), data.data_ptr(),
               tensor.shape[0], row, dtype, byref(handle.number))
    return handle


def allgather(tensor, name=None):
    return synchronize(allgather_async(tensor, name))


def _gathered(number, shape, dtype):
    address, rows, ranks = c_void_p(), c_size_t(), c_size_t()
    _core.call("rm_allgather_result", number, byref(address), byref(rows),
               byref(POINTER(c_size_t)()), byref(ranks))
    result = torch.empty((rows.value,) + shape, dtype=dtype)
    if result.numel():
        memmove(result.data_ptr(), address.value, result.numel() * result.element_size())
    return result


# ---- broadcast, barrier


def broadcast_async_(tensor, root_rank, name=None):
    """In place, asynchronous."""
    data = tensor.detach() if isinstance(tensor, torch.Tensor) else tensor
    dtype = _dtype_of(data)
    handle = Handle(data, lambda _: tensor)
    _core.call("rm_broadcast_async", _full_name("broadcast", name), data.data_ptr(), data.numel(),
               dtype, int(root_rank), byref(handle.number))
    return handle


def broadcast_async(tensor, root_rank, name=None):
    """Asynchronous; synchronize() returns a new tensor."""
    _dtype_of(tensor)
    return broadcast_async_(tensor.detach().clone(), root_rank, name)


def broadcast(tensor, root_rank, name=None):
    return synchronize(broadcast_async(tensor, root_rank, name))


def broadcast_(tensor, root_rank, name=None):
    """In place."""
    return synchronize(broadcast_async_(tensor, root_rank, name))


def barrier():
    """Returns when all ranks have called it."""
    handle = Handle(None, lambda _: None)
    _core.call("rm_barrier_async", _full_name("barrier", None), byref(handle.number))
    synchronize(handle)
