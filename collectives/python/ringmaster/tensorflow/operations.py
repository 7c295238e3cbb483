"""Collectives on tensors, as Horovod names them for TensorFlow.

For all of them:

* Tensors, variables and what tf.convert_to_tensor() takes, of types uint8 to uint64, int8 to int64,
  float16, bfloat16, float32, float64 or bool. Results are new tensors. What is on a GPU
  TensorFlow copies to the host's memory and back.
* They work in eager mode, in a tf.function and in a graph of tf.compat.v1. They are differentiable.
* `name` says which calls of the ranks belong together. Without it calls are counted: in eager mode
  within a step, in a graph within the graph, so all ranks must make the same ones in the same
  order.
* `process_set`: the ranks that take part, by default all.
* `device_dense`, `device_sparse` and `ignore_name_scope` are for Horovod's scripts, and not used.
* ValueError: a wrong argument; nothing was sent. HorovodInternalError: what the ranks gave does not
  fit together (shapes, types, ...); every rank raises it with the same words, and the job goes on.
  Inside a graph TensorFlow makes a tf.errors.OpError of it, with these words.
"""

import numpy
import tensorflow as tf

from ringmaster import _core
from ringmaster.process_sets import global_process_set
from ringmaster.reductions import Average, choose_op
from ringmaster.tensorflow import gradients, sparse
from ringmaster.tensorflow.calling import as_it_is, call, name_of
from ringmaster.tensorflow.compression import Compression

__all__ = [
    "allgather", "allreduce", "alltoall", "broadcast", "broadcast_", "grouped_allgather",
    "grouped_allreduce", "grouped_reducescatter", "local_rank_op", "local_size_op",
    "process_set_included_op", "rank_op", "reducescatter", "size_op"
]


def _tensors(values):
    if isinstance(values, (tf.Tensor, tf.Variable, tf.IndexedSlices)):
        raise ValueError("tensors: is a %s, must be a list of them" % type(values).__name__)
    return [tf.convert_to_tensor(value) for value in values]


# ---- allreduce


@as_it_is
def allreduce(tensor, average=None, device_dense="", device_sparse="",
              compression=Compression.none, op=None, prescale_factor=1.0, postscale_factor=1.0,
              name=None, process_set=global_process_set, ignore_name_scope=False):
    """The element-wise reduction over all ranks, of the tensor's shape: the same on each rank, bit
    by bit.

    `op`: Average (the default; of integers rounded down), Sum, Min, Max, Product or Adasum;
    `average=False` is Horovod's older way to say Sum. Inputs are multiplied by `prescale_factor`,
    the result by `postscale_factor`. `compression`: what travels. Averages divide by the number of
    ranks that took part. tf.IndexedSlices give tf.IndexedSlices, with the entries of all ranks;
    scale factors and compression don't apply to them. The gradient is the same reduction of the
    ranks' gradients; Min, Max, Product and Adasum have none.
    """
    del device_dense, device_sparse, ignore_name_scope
    op = choose_op(op, average)
    if isinstance(tensor, tf.IndexedSlices):
        return sparse.allreduce(tensor, name_of("allreduce", name, process_set), op, process_set)
    return _reduced([tensor], name, compression, op, prescale_factor, postscale_factor,
                    process_set)[0]


@as_it_is
def grouped_allreduce(tensors, average=None, device_dense="", device_sparse="",
                      compression=Compression.none, op=None, prescale_factor=1.0,
                      postscale_factor=1.0, process_set=global_process_set,
                      ignore_name_scope=False, name=None):
    """allreduce() of several tensors as one: all of them complete, or none. Returns a list.

    tf.IndexedSlices are reduced one by one.
    """
    del device_dense, device_sparse, ignore_name_scope
    op = choose_op(op, average)
    results = list(tensors)
    dense = [i for i, tensor in enumerate(results) if not isinstance(tensor, tf.IndexedSlices)]
    reduced = _reduced([results[i] for i in dense], name, compression, op, prescale_factor,
                       postscale_factor, process_set)
    for i, tensor in enumerate(results):
        if i not in dense:
            results[i] = allreduce(tensor, op=op, process_set=process_set,
                                   name=name and "%s.sparse.%d" % (name, i))
    for i, tensor in zip(dense, reduced):
        results[i] = tensor
    return results


def _reduced(tensors, name, compression, op, prescale, postscale, process_set):
    if not tensors:
        return []
    compressed = [compression.compress(tensor) for tensor in _tensors(tensors)]
    results = gradients.allreduce([tensor for tensor, _ in compressed],
                                  name_of("allreduce", name, process_set), op, prescale, postscale,
                                  process_set)
    return [compression.decompress(result, context)
            for result, (_, context) in zip(results, compressed)]


# ---- allgather, reducescatter, alltoall


@as_it_is
def allgather(tensor, name=None, ignore_name_scope=False, process_set=global_process_set):
    """The rows (entries along the first dimension) of all ranks, in rank order.

    Ranks may give different numbers of rows; all other dimensions must be the same. A scalar is a
    ValueError. The gradient is the average over the ranks of that of the own rows.
    """
    del ignore_name_scope
    return grouped_allgather([tensor], name, process_set=process_set)[0]


@as_it_is
def grouped_allgather(tensors, name=None, ignore_name_scope=False,
                      process_set=global_process_set):
    """allgather() of several tensors as one: all of them complete, or none. Returns a list."""
    del ignore_name_scope
    return gradients.allgather(_tensors(tensors), name_of("allgather", name, process_set),
                               process_set)


@as_it_is
def reducescatter(tensor, device_dense="", compression=Compression.none, op=Average, name=None,
                  process_set=global_process_set, ignore_name_scope=False, prescale_factor=1.0,
                  postscale_factor=1.0):
    """This rank's rows of the reduction over all ranks.

    Shapes must be the same on all ranks. Each gets rows / size rows, of uneven ones the first ranks
    one more. `op`, scale factors and `compression` as in allreduce(). The gradient is the allgather
    of the ranks' gradients; that of Sum is multiplied by the number of ranks, as in Horovod.
    """
    del device_dense, ignore_name_scope
    return grouped_reducescatter([tensor], "", compression, op, process_set, prescale_factor,
                                 postscale_factor, name)[0]


@as_it_is
def grouped_reducescatter(tensors, device_dense="", compression=Compression.none, op=Average,
                          process_set=global_process_set, prescale_factor=1.0,
                          postscale_factor=1.0, name=None, ignore_name_scope=False):
    """reducescatter() of several tensors as one: all of them complete, or none. Returns a list."""
    del device_dense, ignore_name_scope
    op = choose_op(op)
    compressed = [compression.compress(tensor) for tensor in _tensors(tensors)]
    results = gradients.reducescatter([tensor for tensor, _ in compressed],
                                      name_of("reducescatter", name, process_set), op,
                                      prescale_factor, postscale_factor, process_set)
    return [compression.decompress(result, context)
            for result, (_, context) in zip(results, compressed)]


@as_it_is
def alltoall(tensor, splits=None, name=None, ignore_name_scope=False,
             process_set=global_process_set):
    """Sends rows to each rank, and returns those that all ranks have sent here, in rank order.

    `splits`: a list or an integer tensor with one entry for each rank, how many rows it gets; their
    sum must be the number of rows. Without it all get the same number. With it the result is a
    pair: the rows, and an int32 tensor of how many each rank has sent. Splits that don't fit on one
    rank are a ValueError on all. The gradient travels back the same way.
    """
    del ignore_name_scope
    given = None if splits is None else tf.convert_to_tensor(splits)
    rows, received = gradients.alltoall(tf.convert_to_tensor(tensor), given,
                                        name_of("alltoall", name, process_set), process_set)
    return rows if splits is None else (rows, received)


# ---- broadcast


@as_it_is
def broadcast(tensor, root_rank, name=None, ignore_name_scope=False,
              process_set=global_process_set):
    """The root's values, as a new tensor.

    `root_rank`: a rank of the world, also in a process set, as of the beginning of this step
    (step_view()); unknown ones are a ValueError. Shapes, types and roots must be the same on all
    ranks. A root that dies is a RootLostError on all
    others. The gradient reaches the root alone: the average over the ranks.
    """
    del ignore_name_scope
    return gradients.broadcast(tf.convert_to_tensor(tensor), root_rank,
                               name_of("broadcast", name, process_set), process_set)


@as_it_is
def broadcast_(variables, root_rank, name=None, process_set=global_process_set):
    """Makes the variables those of the root, in place. Returns their new values as a list; in a
    graph of tf.compat.v1 one assigning operation for each.
    """
    from ringmaster.tensorflow.functions import broadcast_in_place
    return broadcast_in_place(list(variables), root_rank, name, process_set)


# ---- Where a worker stands, as tensors: they are asked for anew whenever a graph runs


def _number(function):
    return call(lambda _: [numpy.array(function(), numpy.int32)], [], [tf.int32], [[]])[0]


@as_it_is
def size_op(process_set_id=0, name=None):
    """How many workers there are (in a process set: its members), as an int32 scalar."""
    del name
    return _number(lambda: _set(process_set_id).size())


@as_it_is
def rank_op(name=None):
    """This worker's rank, as an int32 scalar."""
    del name
    return _number(_core.rank)


@as_it_is
def local_rank_op(name=None):
    """This worker's place among those of its pod, as an int32 scalar."""
    del name
    return _number(_core.local_rank)


@as_it_is
def local_size_op(name=None):
    """How many workers its pod has, as an int32 scalar."""
    del name
    return _number(_core.local_size)


@as_it_is
def process_set_included_op(process_set_id=0, name=None):
    """1 if this worker is in the process set, else 0, as an int32 scalar."""
    del name
    return _number(lambda: int(_set(process_set_id).included()))


def _set(process_set_id):
    from ringmaster.process_sets import ProcessSet
    found = ProcessSet.of_all()
    found.process_set_id = process_set_id
    return found
