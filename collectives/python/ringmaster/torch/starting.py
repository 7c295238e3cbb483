"""Starts collectives: tensors in, operations in flight out.

Whatever is named `names` is complete already. More than one tensor is a group, of which all
complete or none.
"""

from ctypes import c_size_t, memmove

import torch

from ringmaster import _in_flight, _library
from ringmaster.process_sets import global_process_set
from ringmaster.torch import devices
from ringmaster.torch.tensors import (check_writable, described, dtype_of, dtype_of_rows, like,
                                      packed, put_back, request, requests)


def start_allreduce(source, target, name, op, process_set=global_process_set, prescale=1.0,
                    postscale=1.0, finish=None, priority=0):
    """Reduces `source`, which is contiguous, into `target`. `priority`: of what is ready together,
    lower numbers run first.
    """
    dtype = dtype_of(source)
    finish = finish or (lambda _: target)
    if process_set.number() or priority or source.device.type != "cpu":
        wanted = request(_library.ALLREDUCE, name, source, dtype, process_set, op=op,
                         output=target.data_ptr(), prescale=float(prescale),
                         postscale=float(postscale), priority=priority)
        operation = _in_flight.submit(wanted, (source, target))
    else:  # a call that costs less
        operation = _in_flight.start("rm_allreduce_tensor_async", name, source.data_ptr(),
                                     target.data_ptr(), described(tuple(source.shape), dtype), op,
                                     float(prescale), float(postscale), buffers=(source, target))
    return _in_flight.Handle(operation, finish)


def start_allreduces(tensors, names, op, prescale, postscale, process_set, in_place=False):
    dtypes = [dtype_of(tensor) for tensor in tensors]  # nothing is sent if one of them is wrong
    for tensor in tensors if in_place else []:
        check_writable(tensor)
    sources = [packed(tensor) for tensor in tensors]
    targets = sources if in_place else [like(source) for source in sources]

    def finish(_):
        return list(map(put_back, sources, tensors)) if in_place else targets

    if len(tensors) == 1:
        handle = start_allreduce(sources[0], targets[0], names[0], op, process_set, prescale,
                                 postscale, lambda _: finish(_)[0])
        return _in_flight.GroupHandle([handle])
    made = requests(_library.ALLREDUCE, names, sources, dtypes, process_set, targets, op=op,
                    prescale=float(prescale), postscale=float(postscale))
    return _in_flight.submit_group(made, (sources, targets), finish)


def start_allgathers(tensors, names, process_set, rows_by_rank=None):
    """`rows_by_rank`: a list for each tensor, filled when the operation is done."""
    dtypes = [dtype_of_rows(tensor, "gathered") for tensor in tensors]
    sources = [packed(tensor) for tensor in tensors]
    made = requests(_library.ALLGATHER, names, sources, dtypes, process_set)
    return _in_flight.submit_group(made, sources, _all_rows_like(sources, rows_by_rank))


def start_reducescatters(tensors, names, op, prescale, postscale, process_set,
                         rows_by_rank=None):
    """`rows_by_rank`: a list for each tensor, filled when the operation is done."""
    dtypes = [dtype_of_rows(tensor, "scattered") for tensor in tensors]
    sources = [packed(tensor) for tensor in tensors]
    made = requests(_library.REDUCESCATTER, names, sources, dtypes, process_set, op=op,
                    prescale=float(prescale), postscale=float(postscale))
    return _in_flight.submit_group(made, sources, _all_rows_like(sources, rows_by_rank))


def start_alltoall(tensor, splits, name, process_set):
    """The result is (rows received, how many of them from each rank)."""
    dtype = dtype_of_rows(tensor, "exchanged")
    source = packed(tensor)
    wanted = request(_library.ALLTOALL, name, source, dtype, process_set)
    if splits is not None:
        rows = [int(split) for split in splits]
        if any(split < 0 for split in rows):
            raise ValueError("splits: is %r, must not be negative" % rows)
        wanted.splits, wanted.splits_count = (c_size_t * max(1, len(rows)))(*rows), len(rows)
    given = isinstance(splits, torch.Tensor)
    like_splits = {"dtype": splits.dtype if given else torch.int32,
                   "device": splits.device if given else "cpu"}

    def finish(operation):
        received = []
        result = _rows_like(source, received)(operation)
        return result, torch.tensor(received, **like_splits)

    return _in_flight.Handle(_in_flight.submit(wanted, source), finish)


def start_broadcast(tensor, root, name, process_set=global_process_set):
    """In place, from a worker as _core.worker_at() names it."""
    dtype = dtype_of(tensor)
    check_writable(tensor)
    data = packed(tensor)
    wanted = request(_library.BROADCAST, name, data, dtype, process_set, output=data.data_ptr(),
                     root=root.encode())
    operation = _in_flight.submit(wanted, data)
    return _in_flight.Handle(operation, lambda _: put_back(data, tensor))


def _all_rows_like(tensors, rows_by_rank):
    makes = [_rows_like(tensor, rows_by_rank and rows_by_rank[index])
             for index, tensor in enumerate(tensors)]
    return lambda done: [make(member) for make, member in zip(makes, done.members())]


def _rows_like(tensor, rows_by_rank=None):
    """Makes the result of an operation whose rows are like those of `tensor`."""
    shape, dtype, device = tuple(tensor.shape[1:]), tensor.dtype, tensor.device

    def finish(operation):
        address, rows = operation.result(rows_by_rank)
        result = torch.empty((rows,) + shape, dtype=dtype, device=device)
        count = result.numel() * result.element_size()
        if count and device.type != "cpu":
            copy = devices.copy_of(address, count, device)
            return copy.view(dtype).view(result.shape)
        if count:
            memmove(result.data_ptr(), address, count)
        return result

    return finish
