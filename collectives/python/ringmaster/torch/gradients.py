"""Collectives through which gradients flow. Each takes and returns what its name says, and waits.

The gradients are Horovod's: an allreduce's travels through the same allreduce; those of an
allgather and a broadcast are averaged over the ranks, and that of a reducescatter is scaled so that
Sum and Average have the same.
"""

import torch

from ringmaster import _core
from ringmaster.errors import HorovodInternalError
from ringmaster.reductions import OPS, Average, Sum
from ringmaster.torch import starting

def allreduce(tensors, names, op, prescale, postscale, process_set):
    return _apply(_Allreduce, tensors, names, op, prescale, postscale, process_set)


def allgather(tensors, names, process_set):
    return _apply(_Allgather, tensors, names, process_set)


def reducescatter(tensors, names, op, prescale, postscale, process_set):
    return _apply(_Reducescatter, tensors, names, op, prescale, postscale, process_set)


def alltoall(tensor, splits, name, process_set):
    """(rows received, how many of them from each rank)."""
    if _wanted([tensor]):
        return _Alltoall.apply(tensor, splits, name, process_set)
    return starting.start_alltoall(tensor, splits, name, process_set).wait()


def broadcast(tensor, root, name, process_set):
    """`root` as _core.worker_at() names it. The result is a new tensor."""
    starting.dtype_of(tensor)
    if _wanted([tensor]):
        return _Broadcast.apply(tensor, root, name, process_set)
    return starting.start_broadcast(tensor.detach().clone(), root, name, process_set).wait()


def _wanted(tensors):
    return torch.is_grad_enabled() and any(
        isinstance(tensor, torch.Tensor) and tensor.requires_grad for tensor in tensors)


def _apply(function, tensors, *options):
    if not tensors:
        return []
    if _wanted(tensors):
        return list(function.apply(*options, *tensors))
    return function.run(tensors, *options)


def _for_gradients(names):
    return [name + b".gradient" for name in names]


def _refuse_without_gradient(op):
    if op not in (Sum, Average):
        raise ValueError("op: %s has no gradient over ranks; Sum and Average have" % OPS[op])


def _flowing(ctx, gradients):
    """Where gradients flow: integers have none."""
    return [index for index, floating in enumerate(ctx.floating) if floating], \
        [gradient for gradient, floating in zip(gradients, ctx.floating) if floating]


def _spread(ctx, places, gradients, options):
    """What backward() returns: nothing for the options, then a gradient or nothing for each tensor.
    """
    result = [None] * len(ctx.floating)
    for place, gradient in zip(places, gradients):
        result[place] = gradient
    return (None,) * options + tuple(result)


class _Allreduce(torch.autograd.Function):

    @staticmethod
    def run(tensors, *options):
        return starting.start_allreduces(tensors, *options).wait()

    @staticmethod
    def forward(ctx, names, op, prescale, postscale, process_set, *tensors):
        ctx.names, ctx.op = names, op
        ctx.options = op, prescale, postscale, process_set
        ctx.floating = [tensor.is_floating_point() for tensor in tensors]
        return tuple(_Allreduce.run(tensors, names, *ctx.options))

    @staticmethod
    def backward(ctx, *gradients):
        _refuse_without_gradient(ctx.op)
        places, flowing = _flowing(ctx, gradients)
        names = _for_gradients([ctx.names[place] for place in places])
        return _spread(ctx, places, allreduce(flowing, names, *ctx.options), options=5)


class _Allgather(torch.autograd.Function):

    @staticmethod
    def run(tensors, *options):
        return starting.start_allgathers(tensors, *options).wait()

    @staticmethod
    def forward(ctx, names, process_set, *tensors):
        rows_by_rank = [[] for _ in tensors]
        results = starting.start_allgathers(tensors, names, process_set, rows_by_rank).wait()
        place = process_set.place_among(len(rows_by_rank[0]))
        for tensor, rows in zip(tensors, rows_by_rank):
            if place is None or rows[place] != tensor.shape[0]:
                raise HorovodInternalError("allgather: the world changed meanwhile, so it is not "
                                           "known which gradient is whose")
        ctx.names, ctx.process_set = names, process_set
        ctx.own = [(sum(rows[:place]), rows[place]) for rows in rows_by_rank]
        ctx.floating = [tensor.is_floating_point() for tensor in tensors]
        return tuple(results)

    @staticmethod
    def backward(ctx, *gradients):
        places, flowing = _flowing(ctx, gradients)
        names = _for_gradients([ctx.names[place] for place in places])
        averages = allreduce(flowing, names, Average, 1.0, 1.0, ctx.process_set)
        own = [average.narrow(0, *ctx.own[place]) for place, average in zip(places, averages)]
        return _spread(ctx, places, own, options=2)


class _Reducescatter(torch.autograd.Function):

    @staticmethod
    def run(tensors, *options):
        return starting.start_reducescatters(tensors, *options).wait()

    @staticmethod
    def forward(ctx, names, op, prescale, postscale, process_set, *tensors):
        rows_by_rank = [[] for _ in tensors]
        results = starting.start_reducescatters(tensors, names, op, prescale, postscale,
                                                process_set, rows_by_rank).wait()
        # How many ranks took part in the result: the same on all of them, which the size of the
        # world is not when backward comes, if a rank has died meanwhile.
        ranks = len(rows_by_rank[0]) if op == Sum else 1
        ctx.names, ctx.op, ctx.scale = names, op, prescale * postscale * ranks
        ctx.process_set = process_set
        ctx.floating = [tensor.is_floating_point() for tensor in tensors]
        return tuple(results)

    @staticmethod
    def backward(ctx, *gradients):
        _refuse_without_gradient(ctx.op)
        places, flowing = _flowing(ctx, gradients)
        names = _for_gradients([ctx.names[place] for place in places])
        scaled = [gradient * ctx.scale for gradient in flowing]
        whole = allgather(scaled, names, ctx.process_set)
        return _spread(ctx, places, whole, options=5)


class _Alltoall(torch.autograd.Function):

    @staticmethod
    def forward(ctx, tensor, splits, name, process_set):
        rows, received = starting.start_alltoall(tensor, splits, name, process_set).wait()
        ctx.name, ctx.received, ctx.process_set = name, received, process_set
        ctx.mark_non_differentiable(received)
        return rows, received

    @staticmethod
    def backward(ctx, gradient, _):
        name, = _for_gradients([ctx.name])
        return alltoall(gradient, ctx.received, name, ctx.process_set)[0], None, None, None


class _Broadcast(torch.autograd.Function):

    @staticmethod
    def forward(ctx, tensor, root, name, process_set):
        ctx.name, ctx.process_set = name, process_set
        ctx.sends = root == _core.own_worker()
        return starting.start_broadcast(tensor.detach().clone(), root, name, process_set).wait()

    @staticmethod
    def backward(ctx, gradient):
        average, = allreduce([gradient], _for_gradients([ctx.name]), Average, 1.0, 1.0,
                             ctx.process_set)
        return average if ctx.sends else torch.zeros_like(average), None, None, None
