"""Collectives through which gradients flow. Each takes tensors and a complete name.

The gradients are Horovod's: an allreduce's travels through the same allreduce; those of an
allgather and a broadcast are averaged over the ranks, and that of a reducescatter is scaled so that
Sum and Average have the same.
"""

import numpy
import tensorflow as tf

from ringmaster import _core, _requests, arrays
from ringmaster.errors import HorovodInternalError
from ringmaster.reductions import OPS, Average, Sum
from ringmaster.tensorflow.calling import call


def allreduce(tensors, name, op, prescale, postscale, process_set):
    """A list of tensors. One of several has the name with its number behind it."""
    if not tensors:
        return []

    def function(given):
        return arrays.start_allreduces(given, _names(name, given), op, prescale, postscale,
                                       process_set).wait()

    def again(gradients):
        _refuse_without_gradient(op)
        return allreduce(gradients, name + b".gradient", op, prescale, postscale, process_set)

    @tf.custom_gradient
    def forward(*tensors):
        results = call(function, tensors, [tensor.dtype for tensor in tensors],
                       [tensor.shape for tensor in tensors])
        return results, lambda *gradients: _where_they_flow(again, gradients)

    return _listed(forward(*tensors))


def allgather(tensors, name, process_set):
    """A list of tensors."""
    if not tensors:
        return []
    count = len(tensors)

    def function(given):
        counts = [[] for _ in given]
        results = arrays.start_allgathers(given, _names(name, given), process_set, counts).wait()
        return results + [_own_rows(array, rows, process_set)
                          for array, rows in zip(given, counts)]

    @tf.custom_gradient
    def forward(*tensors):
        results = call(function, tensors, [tensor.dtype for tensor in tensors] + count * [tf.int32],
                       [_any_rows(tensor) for tensor in tensors] + count * [[2]])

        def backward(*gradients):
            return _where_they_flow(
                lambda flowing: allreduce(flowing, name + b".gradient", Average, 1.0, 1.0,
                                          process_set), gradients, results[count:])

        return results[:count], backward

    return _listed(forward(*tensors))


def _own_rows(array, rows, process_set):
    """Where among those of all ranks they begin, and how many they are. Negative: nobody can tell,
    because the world has changed meanwhile.
    """
    place = process_set.place_among(len(rows))
    if place is None or rows[place] != array.shape[0]:
        return numpy.array([-1, 0], numpy.int32)
    return numpy.array([sum(rows[:place]), rows[place]], numpy.int32)


def _cut(given):
    average, (begin, count) = given
    if begin < 0:
        raise HorovodInternalError("allgather: the world changed meanwhile, so it is not known "
                                   "which gradient is whose")
    return [average[begin:begin + count]]


def reducescatter(tensors, name, op, prescale, postscale, process_set):
    """A list of tensors."""
    if not tensors:
        return []

    # The last result is how many ranks took part: the same on all of them, which the size of the
    # world is not when the gradient comes, if a rank has died meanwhile.
    def function(given):
        counts = [[] for _ in given]
        results = arrays.start_reducescatters(given, _names(name, given), op, prescale, postscale,
                                              process_set, counts).wait()
        return results + [numpy.array(len(counts[0]), numpy.int32)]

    def again(gradients, ranks):
        _refuse_without_gradient(op)
        scale = prescale * postscale * tf.cast(ranks if op == Sum else 1, tf.float64)
        return allgather([gradient * tf.cast(scale, gradient.dtype) for gradient in gradients],
                         name + b".gradient", process_set)

    @tf.custom_gradient
    def forward(*tensors):
        *results, ranks = call(function, tensors,
                               [tensor.dtype for tensor in tensors] + [tf.int32],
                               [_any_rows(tensor) for tensor in tensors] + [[]])
        return results, lambda *gradients: _where_they_flow(
            lambda flowing: again(flowing, ranks), gradients)

    return _listed(forward(*tensors))


def alltoall(tensor, splits, name, process_set):
    """(rows received, how many of them from each rank). `splits`: an integer tensor or None."""

    def function(given):
        rows, received = arrays.start_alltoall(given[0], given[1] if given[1:] else None, name,
                                               process_set).wait()
        return [rows, numpy.array(received, numpy.int32)]

    @tf.custom_gradient
    def forward(*given):
        rows, received = call(function, given, [given[0].dtype, tf.int32],
                              [_any_rows(given[0]), [None]])

        def backward(gradient, _):
            back, _ = alltoall(gradient, received, name + b".gradient", process_set)
            return [back] + [None] * (len(given) - 1)

        return [rows, received], backward

    return forward(tensor) if splits is None else forward(tensor, splits)


def broadcast(tensor, root_rank, name, process_set):

    def function(given):
        return arrays.start_broadcasts(given, _core.worker_at(root_rank), [name],
                                       process_set).wait()

    def only_for_the_root(given):
        sends = _core.worker_at(root_rank) == _core.own_worker()
        return given if sends else [numpy.zeros_like(given[0])]

    @tf.custom_gradient
    def forward(tensor):
        result, = call(function, [tensor], [tensor.dtype], [tensor.shape])

        def backward(gradient):
            average = allreduce([gradient], name + b".gradient", Average, 1.0, 1.0, process_set)
            return call(only_for_the_root, average, [tensor.dtype], [tensor.shape])[0]

        return result, backward

    return forward(tensor)


def size_tensor(process_set):
    """How many ranks the set has when the tensor is computed."""
    return call(lambda _: [numpy.array(process_set.size(), numpy.int32)], [], [tf.int32], [[]])[0]


def _names(name, given):
    return [name] if len(given) == 1 else _requests.in_group(name, len(given))


def _any_rows(tensor):
    if tensor.shape.rank is None:
        return tensor.shape
    if tensor.shape.rank == 0:
        raise ValueError("tensor: is a scalar, must have one dimension or more")
    return [None] + tensor.shape[1:].as_list()


def _listed(results):
    return list(results) if isinstance(results, (list, tuple)) else [results]


def _where_they_flow(function, gradients, own_rows=None):
    """function() of those that are there and of floating point: integers have none."""
    flowing = [index for index, gradient in enumerate(gradients)
               if gradient is not None and gradient.dtype.is_floating]
    results = [None] * len(gradients)
    reduced = function([tf.convert_to_tensor(gradients[index]) for index in flowing])
    for index, result in zip(flowing, reduced):
        if own_rows:
            result, = call(_cut, [result, own_rows[index]], [result.dtype],
                           [[None] + result.shape[1:].as_list()])
        results[index] = result
    return results


def _refuse_without_gradient(op):
    if op not in (Sum, Average):
        raise ValueError("op: %s has no gradient over ranks; Sum and Average have" % OPS[op])
