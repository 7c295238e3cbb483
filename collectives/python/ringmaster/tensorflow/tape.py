"""Gradient tapes whose gradient() reduces over the ranks."""

import tensorflow as tf

from ringmaster.process_sets import global_process_set
from ringmaster.reductions import Average
from ringmaster.tensorflow.calling import as_it_is
from ringmaster.tensorflow.compression import Compression
from ringmaster.tensorflow.reducing import Reduction, add_local_layers

__all__ = ["DistributedGradientTape", "PartialDistributedGradientTape"]


class _Distributed:
    """What is added to the class of the tape."""

    def register_local_source(self, source):
        """The gradient of this variable stays this rank's own."""
        self._ringmaster_reduction.keep_local(source)

    @as_it_is
    def gradient(self, target, sources, output_gradients=None, use_generic_names=False, **options):
        """As tf.GradientTape.gradient(), reduced over the ranks. `use_generic_names` is for
        Horovod's scripts: the names of variables are not used.
        """
        del use_generic_names
        found = super().gradient(target, sources, output_gradients, **options)
        variables = tf.nest.flatten(sources)
        # An IndexedSlices is one gradient, not a structure of tensors.
        values = tf.nest.flatten(found, expand_composites=False)
        reduced = self._ringmaster_reduction.reduce(values, variables)
        return tf.nest.pack_sequence_as(sources, reduced)


@as_it_is
def DistributedGradientTape(gradtape, device_dense="", device_sparse="",
                            compression=Compression.none, sparse_as_dense=False, op=Average,
                            gradient_predivide_factor=1.0, num_groups=0, groups=None,
                            process_set=global_process_set, scale_local_gradients=True, *,
                            sampler=None):
    """A tape like `gradtape`, with what it has recorded, whose gradient() reduces over the ranks.

    compression: what gradients travel as, see Compression.
    sparse_as_dense: tf.IndexedSlices are made dense. Else the ranks' entries are gathered.
    op: Average, Sum or Adasum.
    gradient_predivide_factor: gradients are divided by it before they are added up, and the mean is
        made of the rest after it: for sums that float16 could not hold. Only with Average.
    process_set: the ranks whose gradients are reduced. On the others they stay their own.
    scale_local_gradients: gradients of variables given to register_local_source() are divided by
        the number of ranks.
    sampler: an ElasticSampler whose sharded_indices() or sharded_batches() feed the loss, which is
        a mean over its rows: the gradients' mean is then over samples, not over ranks, and they
        count as done with it.
    num_groups, groups, device_dense, device_sparse: for Horovod's scripts. All dense gradients
        travel as one group.
    """
    del device_dense, device_sparse
    if not isinstance(gradtape, tf.GradientTape):
        raise ValueError("gradtape: is a %s, must be a tf.GradientTape" % type(gradtape).__name__)
    if isinstance(gradtape, _Distributed):
        raise ValueError("gradtape: is a DistributedGradientTape already")
    kind = type("DistributedGradientTape", (_Distributed, type(gradtape)), {})
    result = kind.__new__(kind)
    result.__dict__.update(gradtape.__dict__)
    result._ringmaster_reduction = Reduction(
        "tape", compression, sparse_as_dense, op, gradient_predivide_factor, groups, num_groups,
        process_set, scale_local_gradients, sampler)
    return result


@as_it_is
def PartialDistributedGradientTape(gradtape, device_dense="", device_sparse="",
                                   compression=Compression.none, sparse_as_dense=False, op=Average,
                                   gradient_predivide_factor=1.0, num_groups=0, groups=None,
                                   process_set=global_process_set, local_layers=None,
                                   scale_local_gradients=True):
    """A DistributedGradientTape for which the gradients of `local_layers`, a Keras layer or a list
    of them, stay each rank's own.
    """
    tape = DistributedGradientTape(gradtape, device_dense, device_sparse, compression,
                                   sparse_as_dense, op, gradient_predivide_factor, num_groups,
                                   groups, process_set, scale_local_gradients)
    add_local_layers(tape._ringmaster_reduction, local_layers)
    return tape
