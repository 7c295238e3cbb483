"""Collectives on tensors, as Horovod names them.

For all of them:

* Tensors are on the CPU or, but for send and recv, on the worker's GPU (docs/gpu.md), of types
  uint8 to uint64, int8 to int64, float16, bfloat16, float32, float64 or bool, and of any strides.
  What is not in place returns new, contiguous tensors in the same memory.
* `name` says which calls of the ranks belong together; without it calls are counted within a step,
  so all ranks must make the same ones in the same order.
* `process_set`: the ranks that take part, by default all.
* ValueError: a wrong argument; nothing was sent. HorovodInternalError: what the ranks gave does not
  fit together (shapes, types, ...); every rank raises it with the same words, and the job goes on.
  WorkerDroppedError: the others go on without this worker.
* A `..._async` function returns a Handle at once, for synchronize() and poll(). Memory in flight
  stays alive, whatever becomes of the handle; who writes to a tensor in flight spoils the result.
* The others are differentiable, unless they work in place (their name ends with `_`).
"""

import torch

from ringmaster import _core, _in_flight
from ringmaster._requests import full_name, names_of_group
from ringmaster.process_sets import global_process_set
from ringmaster.reductions import OPS, Average, Sum, choose_op
from ringmaster.torch import gradients, starting, transfers
from ringmaster.torch.compression import Compression
from ringmaster.torch.handles import Handle, synchronize
from ringmaster.torch.tensors import dtype_of, dtype_of_rows


# ---- allreduce


def allreduce_async_(tensor, average=None, name=None, op=None, prescale_factor=1.0,
                     postscale_factor=1.0, process_set=global_process_set):
    """allreduce() in place: after synchronize(), which returns `tensor`, the result stands in it.
    """
    op = choose_op(op, average)
    dtype_of(tensor)
    names = [full_name("allreduce", name, process_set)]
    return Handle(starting.start_allreduces([tensor], names, op, prescale_factor, postscale_factor,
                                            process_set, in_place=True).single())


def allreduce_async(tensor, average=None, name=None, op=None, prescale_factor=1.0,
                    postscale_factor=1.0, process_set=global_process_set):
    """allreduce() of which synchronize() returns the result. Not differentiable."""
    op = choose_op(op, average)
    dtype_of(tensor)
    names = [full_name("allreduce", name, process_set)]
    return Handle(starting.start_allreduces([tensor], names, op, prescale_factor, postscale_factor,
                                            process_set).single())


def allreduce(tensor, average=None, name=None, compression=Compression.none, op=None,
              prescale_factor=1.0, postscale_factor=1.0, process_set=global_process_set):
    """The element-wise reduction over all ranks, of the tensor's shape: the same on each rank, bit
    by bit.

    `op`: Average (the default; of integers rounded down), Sum, Min, Max or Product; `average=False`
    is Horovod's older way to say Sum. Inputs are multiplied by `prescale_factor`, the result by
    `postscale_factor`. `compression`: what travels. Averages divide by the number of ranks that
    took part. The gradient is the same reduction of the ranks' gradients; Min, Max and Product have
    none.
    """
    op = choose_op(op, average)
    dtype_of(tensor)
    compressed, context = compression.compress(tensor)
    result, = gradients.allreduce([compressed], [full_name("allreduce", name, process_set)], op,
                                  prescale_factor, postscale_factor, process_set)
    return compression.decompress(result, context)


def allreduce_(tensor, average=None, name=None, op=None, prescale_factor=1.0,
               postscale_factor=1.0, process_set=global_process_set):
    """allreduce() in place. Returns `tensor`."""
    return synchronize(allreduce_async_(tensor, average, name, op, prescale_factor,
                                        postscale_factor, process_set))


def grouped_allreduce_async_(tensors, average=None, name=None, op=None, prescale_factor=1.0,
                             postscale_factor=1.0, process_set=global_process_set):
    """allreduce_async_() of several tensors as one: all of them complete, or none."""
    op = choose_op(op, average)
    names = names_of_group("allreduce", name, len(tensors), process_set)
    return Handle(starting.start_allreduces(tensors, names, op, prescale_factor, postscale_factor,
                                            process_set, in_place=True))


def grouped_allreduce_async(tensors, average=None, name=None, op=None, prescale_factor=1.0,
                            postscale_factor=1.0, process_set=global_process_set):
    """allreduce_async() of several tensors as one: all of them complete, or none."""
    op = choose_op(op, average)
    names = names_of_group("allreduce", name, len(tensors), process_set)
    return Handle(starting.start_allreduces(tensors, names, op, prescale_factor, postscale_factor,
                                            process_set))


def grouped_allreduce(tensors, average=None, name=None, compression=Compression.none, op=None,
                      prescale_factor=1.0, postscale_factor=1.0, process_set=global_process_set):
    """allreduce() of several tensors as one: all of them complete, or none. Returns a list."""
    op = choose_op(op, average)
    for tensor in tensors:
        dtype_of(tensor)
    compressed = [compression.compress(tensor) for tensor in tensors]
    names = names_of_group("allreduce", name, len(tensors), process_set)
    results = gradients.allreduce([tensor for tensor, _ in compressed], names, op, prescale_factor,
                                  postscale_factor, process_set)
    return [compression.decompress(result, context)
            for result, (_, context) in zip(results, compressed)]


def grouped_allreduce_(tensors, average=None, name=None, op=None, prescale_factor=1.0,
                       postscale_factor=1.0, process_set=global_process_set):
    """grouped_allreduce() in place."""
    return synchronize(grouped_allreduce_async_(tensors, average, name, op, prescale_factor,
                                                postscale_factor, process_set))


# ---- allgather


def allgather_async(tensor, name=None, process_set=global_process_set):
    """allgather() of which synchronize() returns the result. Not differentiable."""
    dtype_of_rows(tensor, "gathered")
    names = [full_name("allgather", name, process_set)]
    return Handle(starting.start_allgathers([tensor], names, process_set).single())


def allgather(tensor, name=None, process_set=global_process_set):
    """The rows (entries along the first dimension) of all ranks, in rank order.

    Ranks may give different numbers of rows; all other dimensions must be the same. A scalar is a
    ValueError. The gradient is the average over the ranks of that of the own rows.
    """
    dtype_of_rows(tensor, "gathered")
    names = [full_name("allgather", name, process_set)]
    result, = gradients.allgather([tensor], names, process_set)
    return result


def grouped_allgather_async(tensors, name=None, process_set=global_process_set):
    """allgather_async() of several tensors as one: all of them complete, or none."""
    names = names_of_group("allgather", name, len(tensors), process_set)
    return Handle(starting.start_allgathers(tensors, names, process_set))


def grouped_allgather(tensors, name=None, process_set=global_process_set):
    """allgather() of several tensors as one: all of them complete, or none. Returns a list."""
    names = names_of_group("allgather", name, len(tensors), process_set)
    return gradients.allgather(tensors, names, process_set)


# ---- reducescatter, alltoall


def reducescatter_async(tensor, name=None, op=Average, process_set=global_process_set,
                        prescale_factor=1.0, postscale_factor=1.0):
    """reducescatter() of which synchronize() returns the result. Not differentiable."""
    op = choose_op(op)
    dtype_of_rows(tensor, "scattered")
    names = [full_name("reducescatter", name, process_set)]
    return Handle(starting.start_reducescatters([tensor], names, op, prescale_factor,
                                                postscale_factor, process_set).single())


def reducescatter(tensor, name=None, compression=Compression.none, op=Average,
                  process_set=global_process_set, prescale_factor=1.0, postscale_factor=1.0):
    """This rank's rows of the reduction over all ranks.

    Shapes must be the same on all ranks. Each gets rows / size rows, of uneven ones the first ranks
    one more. `op`, scale factors and `compression` as in allreduce(). The gradient is the allgather
    of the ranks' gradients; that of Sum is multiplied by the number of ranks, as in Horovod.
    """
    op = choose_op(op)
    dtype_of_rows(tensor, "scattered")
    compressed, context = compression.compress(tensor)
    names = [full_name("reducescatter", name, process_set)]
    result, = gradients.reducescatter([compressed], names, op, prescale_factor, postscale_factor,
                                      process_set)
    return compression.decompress(result, context)


def grouped_reducescatter_async(tensors, name=None, op=Average, process_set=global_process_set,
                                prescale_factor=1.0, postscale_factor=1.0):
    """reducescatter_async() of several tensors as one: all of them complete, or none."""
    op = choose_op(op)
    names = names_of_group("reducescatter", name, len(tensors), process_set)
    return Handle(starting.start_reducescatters(tensors, names, op, prescale_factor,
                                                postscale_factor, process_set))


def grouped_reducescatter(tensors, name=None, compression=Compression.none, op=Average,
                          process_set=global_process_set, prescale_factor=1.0,
                          postscale_factor=1.0):
    """reducescatter() of several tensors as one: all of them complete, or none. Returns a list."""
    op = choose_op(op)
    for tensor in tensors:
        dtype_of_rows(tensor, "scattered")
    compressed = [compression.compress(tensor) for tensor in tensors]
    names = names_of_group("reducescatter", name, len(tensors), process_set)
    results = gradients.reducescatter([tensor for tensor, _ in compressed], names, op,
                                      prescale_factor, postscale_factor, process_set)
    return [compression.decompress(result, context)
            for result, (_, context) in zip(results, compressed)]


def alltoall_async(tensor, splits=None, name=None, process_set=global_process_set):
    """alltoall() of which synchronize() returns (rows, received splits), also without `splits`."""
    name = full_name("alltoall", name, process_set)
    return Handle(starting.start_alltoall(tensor, splits, name, process_set))


def alltoall(tensor, splits=None, name=None, process_set=global_process_set):
    """Sends rows to each rank, and returns those that all ranks have sent here, in rank order.

    `splits`: a list or an integer tensor with one entry for each rank, how many rows it gets; their
    sum must be the number of rows. Without it all get the same number. With it the result is a
    pair: the rows, and a tensor of how many each rank has sent. Splits that don't fit on one rank
    are a ValueError on all. The gradient travels back the same way.
    """
    name = full_name("alltoall", name, process_set)
    rows, received = gradients.alltoall(tensor, splits, name, process_set)
    return rows if splits is None else (rows, received)


# ---- send and receive


def send_async(tensor, rank, tag=0, process_set=global_process_set):
    """send() that returns a handle at once; synchronize() returns `tensor`."""
    return Handle(transfers.start_send(tensor, transfers.worker_of(rank), tag, process_set))


def send(tensor, rank, tag=0, process_set=global_process_set):
    """Sends a tensor to one other rank, and returns when that one has asked for it and the values
    are on their way. They get there unless this worker dies at once.

    `rank`: a rank of the world, also in a process set, as of the beginning of this step
    (step_view()): within the step it means the same worker, whatever dies. That one has to call
    recv() with as many elements of the same type and with the same `tag`; several of one tag belong
    together in their order. No other rank is needed. Sizes or types that differ are a
    HorovodInternalError on both. Where the other one has died or left it is a RootLostError on this
    rank alone, which no other rank knows of: where elastic.run sees it, the process ends. A fault
    of others is not seen: the transfer is finished in the new view. Not differentiable.
    """
    return synchronize(send_async(tensor, rank, tag, process_set))


def recv_async(tensor, rank, tag=0, process_set=global_process_set):
    """recv() that returns a handle at once; the values are in `tensor` after synchronize()."""
    return Handle(transfers.start_recv(tensor, transfers.worker_of(rank), tag, process_set))


def recv(tensor, rank, tag=0, process_set=global_process_set):
    """What `rank` sends, into `tensor`, which it returns. See send()."""
    return synchronize(recv_async(tensor, rank, tag, process_set))


# ---- broadcast


def broadcast_async_(tensor, root_rank, name=None, process_set=global_process_set):
    """broadcast() in place: after synchronize(), which returns `tensor`, the values stand in it."""
    root = _core.worker_at(root_rank)
    dtype_of(tensor)
    name = full_name("broadcast", name, process_set)
    return Handle(starting.start_broadcast(tensor, root, name, process_set))


def broadcast_async(tensor, root_rank, name=None, process_set=global_process_set):
    """broadcast() of which synchronize() returns the result. Not differentiable."""
    dtype_of(tensor)
    return broadcast_async_(tensor.detach().clone(), root_rank, name, process_set)


def broadcast(tensor, root_rank, name=None, process_set=global_process_set):
    """The root's values, as a new tensor.

    `root_rank`: a rank of the world, also in a process set, as of the beginning of this step
    (step_view()); unknown ones are a ValueError. Shapes, types and roots must be the same on all
    ranks. A root that dies is a RootLostError on all
    others. The gradient reaches the root alone: the average over the ranks.
    """
    root = _core.worker_at(root_rank)
    dtype_of(tensor)
    return gradients.broadcast(tensor, root, full_name("broadcast", name, process_set),
                               process_set)


def broadcast_(tensor, root_rank, name=None, process_set=global_process_set):
    """broadcast() in place. Returns `tensor`."""
    return synchronize(broadcast_async_(tensor, root_rank, name, process_set))


# ---- Sparse


def sparse_allreduce_async(tensor, name=None, op=None, process_set=global_process_set):
    """The sum or average of sparse tensors (layout sparse_coo) of one shape, by an allgather of
    their entries.

    synchronize(), or calling the handle, returns a sparse tensor that is not coalesced: an index
    occurs once for each rank that has it.
    """
    op = choose_op(op)
    if op not in (Sum, Average):
        raise ValueError("op: is %s, must be Sum or Average for a sparse tensor" % OPS[op])
    if not isinstance(tensor, torch.Tensor) or tensor.layout != torch.sparse_coo:
        raise ValueError("tensor: is a %s, must be a torch.Tensor of layout torch.sparse_coo"
                         % getattr(tensor, "layout", type(tensor).__name__))
    entries = [tensor._indices().t(), tensor._values()]
    names = names_of_group("sparse", name, len(entries), process_set)
    rows_by_rank = [[], []]
    gathering = starting.start_allgathers(entries, names, process_set, rows_by_rank)

    def sum_up(gathered):
        indices, values = gathered
        if op == Average:
            values = values / len(rows_by_rank[1])
        return torch.sparse_coo_tensor(indices.t(), values, tensor.shape)

    return Handle(_in_flight.Then(gathering, sum_up))
