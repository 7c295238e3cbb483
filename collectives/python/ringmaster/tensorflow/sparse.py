"""tf.IndexedSlices, the gradients of embeddings: the ranks' entries are gathered, not added up."""

import tensorflow as tf

from ringmaster import _requests, arrays
from ringmaster.reductions import OPS, Average, Sum
from ringmaster.tensorflow.calling import call


def allreduce(slices, name, op, process_set):
    """IndexedSlices of all ranks' entries. An index occurs once for each rank that has it."""
    check_op(op)

    def function(given):
        return finish(start(given, name, process_set), op)

    values, indices = call(function, [slices.values, slices.indices],
                           [slices.values.dtype, slices.indices.dtype],
                           [[None] + slices.values.shape[1:].as_list(), [None]])
    return tf.IndexedSlices(values, indices, dense_shape=slices.dense_shape)


def start(given, name, process_set):
    """`given`: arrays of values and indices."""
    counts = [[], []]
    handle = arrays.start_allgathers(given, _requests.in_group(name, 2), process_set, counts)
    return handle, counts[0]


def finish(started, op, scale=1.0):
    """[values, indices] of all ranks, of an Average divided by the ranks that took part."""
    handle, rows_by_rank = started
    values, indices = handle.wait()
    scale = scale / len(rows_by_rank) if op == Average else scale
    if scale != 1.0:
        values *= values.dtype.type(scale)
    return [values, indices]


def check_op(op):
    if op not in (Sum, Average):
        raise ValueError("op: is %s, must be Sum or Average for tf.IndexedSlices; "
                         "sparse_as_dense=True makes them dense" % OPS[op])
