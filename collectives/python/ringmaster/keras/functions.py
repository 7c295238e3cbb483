"""What Horovod's Keras modules have with other arguments than its TensorFlow module."""

import tensorflow as tf

from ringmaster import tensorflow as rm
from ringmaster.process_sets import global_process_set
from ringmaster.reductions import Average
from ringmaster.tensorflow.compression import Compression
from ringmaster.tensorflow.optimizer import is_distributed


def DistributedOptimizer(optimizer, name=None, device_dense="", device_sparse="",
                         compression=Compression.none, sparse_as_dense=False,
                         gradient_predivide_factor=1.0, op=Average, backward_passes_per_step=1,
                         average_aggregated_gradients=False, num_groups=0, groups=None,
                         process_set=global_process_set, scale_local_gradients=True, *,
                         sampler=None):
    """ringmaster.tensorflow.DistributedOptimizer, its arguments in the order of
    horovod.tensorflow.keras.
    """
    return rm.DistributedOptimizer(optimizer, name, False, device_dense, device_sparse, compression,
                                   sparse_as_dense, backward_passes_per_step, op,
                                   gradient_predivide_factor, average_aggregated_gradients,
                                   num_groups, groups, process_set, scale_local_gradients,
                                   sampler=sampler)


def allreduce(value, name=None, average=None, prescale_factor=1.0, postscale_factor=1.0, op=None,
              compression=Compression.none):
    """The reduction of numbers, arrays or tensors of one shape, as a tensor: by default their
    average. In a graph of tf.compat.v1 Keras's session computes it.
    """
    return _evaluated(rm.allreduce(value, average, "", "", compression, op, prescale_factor,
                                   postscale_factor, name))


def allgather(value, name=None):
    """The rows of all ranks, in rank order."""
    return _evaluated(rm.allgather(value, name))


def broadcast(value, root_rank, name=None):
    """The root's value."""
    return _evaluated(rm.broadcast(value, root_rank, name))


def reducescatter(value, name=None, op=Average):
    """This rank's rows of the reduction over all ranks."""
    return _evaluated(rm.reducescatter(value, op=op, name=name))


def broadcast_global_variables(root_rank):
    """Makes all global variables of Keras's session of tf.compat.v1 the root's. RuntimeError in
    eager mode: BroadcastGlobalVariablesCallback and broadcast_variables() do it there.
    """
    return _evaluated(rm.broadcast_global_variables(root_rank))


def _evaluated(result):
    return result if tf.executing_eagerly() else session().run(result)


def session():
    """Keras's, of tf.compat.v1."""
    return tf.compat.v1.keras.backend.get_session()


def load_model(filepath, custom_optimizers=None, custom_objects=None,
               compression=Compression.none, legacy_opts=False):
    """keras.models.load_model(), with the model's optimizer, if it has one, in a
    DistributedOptimizer that goes on with its state.

    custom_optimizers: classes of optimizers that Keras does not know. custom_objects: by name, as
    for Keras. `legacy_opts` is for Horovod's scripts.
    """
    del legacy_opts
    known = {kind.__name__: kind for kind in custom_optimizers or ()}
    known.update(custom_objects or {})
    model = tf.keras.models.load_model(filepath, custom_objects=known)
    if getattr(model, "optimizer", None) is not None:
        model.optimizer = DistributedOptimizer(model.optimizer, compression=compression)
        run_without_xla(model)
    return model


def run_without_xla(model):
    """XLA, which Keras 3 asks for by itself where there is a GPU, can't compile what calls Python.
    """
    if is_distributed(model.optimizer) and getattr(model, "jit_compile", False):
        model.jit_compile = False
