"""A step's gradients, reduced over the ranks: the dense ones in one operation.

So they have one set of ranks, also if a worker dies meanwhile: all of a group complete or none, and
what is repeated is repeated as a whole.
"""

import math

import tensorflow as tf

from ringmaster.process_sets import ProcessSet
from ringmaster.reductions import OPS, Adasum, Average, Sum, choose_op
from ringmaster.tensorflow import gradients, sparse
from ringmaster.tensorflow.calling import name_of
from ringmaster.tensorflow.gradients import size_tensor
from ringmaster.tensorflow.samples import SampleMean


class Reduction:
    """reduce(gradients, variables): what became of Horovod's options.

    name: of what is sent. Two optimizers may have the same, because their graphs count them apart:
    no number of this process goes in, which a joiner would count otherwise.

    op: Average, Sum or Adasum. predivide: gradients are divided by it before they are added up, and
    the mean is made of the rest after it. groups: checked; all gradients travel together anyway.
    """

    def __init__(self, name, compression, sparse_as_dense, op, predivide, groups, num_groups,
                 process_set, scale_local_gradients=True, sampler=None):
        check_options(op, predivide, groups, num_groups, process_set)
        self._name = name
        self._compression = compression
        self._sparse_as_dense = sparse_as_dense
        self._op = op
        self._predivide = float(predivide)
        self._process_set = process_set
        self._scale_local_gradients = scale_local_gradients
        self._samples = None
        if sampler is not None:
            if not self.is_of_all_ranks():
                raise ValueError("sampler: divides the samples between all ranks, so process_set "
                                 "must be global_process_set")
            self._samples = SampleMean(sampler, choose_op(op), predivide)
            self._sparse_as_dense = True  # all in the one operation that says whose samples are in
        self._local = {}  # by identity: variables whose gradients stay this rank's own

    def keep_local(self, variable):
        """ValueError: it is no variable."""
        if not isinstance(variable, tf.Variable) and not hasattr(variable, "assign"):
            raise ValueError("var: is a %s, must be a variable" % type(variable).__name__)
        key = identity(variable)
        self._local[key] = variable  # kept alive, so that nothing else gets its identity

    def is_of_all_ranks(self):
        return self._process_set.process_set_id == 0

    def reduce(self, values, variables, all_finite_or_none=False):
        """`values` with the reduced gradients in place of the ranks' own; None stays None.

        all_finite_or_none: where a rank's own part of what is not reduced isn't finite, no rank's
        is, so that all ranks, or none, leave the step out.
        """
        number = self._process_set.number()
        if number and not self._process_set.included():
            return list(values)
        results = list(values)
        shared, local = [], []
        for index, (value, variable) in enumerate(zip(values, variables)):
            if value is None:
                continue
            if identity(variable) in self._local:
                results[index] = self._scaled(value)
                local.append(index)
            else:
                shared.append(index)
        if self._sparse_as_dense:
            for index in shared:
                results[index] = tf.convert_to_tensor(results[index])
        dense = [index for index in shared if not isinstance(results[index], tf.IndexedSlices)]
        spread = [_zero_or_nan(results[index]) for index in local if all_finite_or_none]
        reduced = self._dense([results[index] for index in dense] + spread)
        for index, value in zip(dense, reduced):
            results[index] = value
        for index, value in zip(local, reduced[len(dense):]):
            results[index] = _plus(results[index], value)
        for index in shared:
            if isinstance(results[index], tf.IndexedSlices):
                name = name_of("gradients", "%s.sparse.%d" % (self._name, index),
                               self._process_set)
                results[index] = sparse.allreduce(results[index], name, self._op,
                                                  self._process_set)
        return results

    def _dense(self, values):
        if not values:
            return []
        compressed = [self._compression.compress(tf.convert_to_tensor(value)) for value in values]
        name = name_of("gradients", self._name, self._process_set)
        sent = [value for value, _ in compressed]
        if self._samples is not None:
            reduced = self._samples.reduce(sent, name, self._process_set)
        else:
            reduced = gradients.allreduce(sent, name, self._op, 1.0 / self._predivide,
                                          self._predivide, self._process_set)
        return [self._compression.decompress(value, context)
                for value, (_, context) in zip(reduced, compressed)]

    def _scaled(self, value):
        """As if the other ranks had had a gradient of zero."""
        if not self._scale_local_gradients:
            return value
        size = size_tensor(self._process_set)
        if isinstance(value, tf.IndexedSlices):
            return tf.IndexedSlices(value.values / tf.cast(size, value.values.dtype),
                                    value.indices, value.dense_shape)
        return value / tf.cast(size, value.dtype)


def _values_of(gradient):
    return gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient


def _zero_or_nan(gradient):
    """A scalar: 0, or NaN where not all of the gradient is finite."""
    return tf.reduce_sum(_values_of(gradient) * 0)


def _plus(gradient, scalar):
    """Stays what it is, a tensor or tf.IndexedSlices."""
    total = _values_of(gradient) + tf.cast(scalar, gradient.dtype)
    if not isinstance(gradient, tf.IndexedSlices):
        return total
    return tf.IndexedSlices(total, gradient.indices, gradient.dense_shape)


def identity(variable):
    """The same for a Keras variable and for the tf.Variable in it."""
    inner = getattr(variable, "value", None)
    return id(inner if isinstance(inner, tf.Variable) else variable)


def check_options(op, predivide, groups, num_groups, process_set):
    """A ValueError says which is wrong, and what is allowed."""
    if choose_op(op) not in (Average, Sum, Adasum):
        raise ValueError("op: is %s, must be Average, Sum or Adasum" % OPS[op])
    if not (predivide > 0 and math.isfinite(predivide)):
        raise ValueError("gradient_predivide_factor: is %r, must be finite and above 0"
                         % (predivide,))
    if predivide != 1.0 and op != Average:
        raise ValueError("gradient_predivide_factor: is %r, must be 1.0 unless op is Average"
                         % (predivide,))
    if not isinstance(process_set, ProcessSet):
        raise ValueError("process_set: is a %s, must be a ProcessSet" % type(process_set).__name__)
    for name, number in (("num_groups", num_groups), ("groups", groups)):
        if isinstance(number, int) and number < 0:
            raise ValueError("%s: is %d, must be 0 or more" % (name, number))
    if groups is not None and not isinstance(groups, (int, list, tuple)):
        raise ValueError("groups: is %r, must be a number or a list of lists of variables"
                         % (groups,))


def add_local_layers(reduction, layers):
    """`layers`: one or several Keras layers whose gradients stay this rank's own."""
    if layers is None:
        return
    for layer in layers if isinstance(layers, (list, tuple)) else [layers]:
        if not hasattr(layer, "trainable_weights"):
            raise ValueError("local_layers: has a %s, must be Keras layers" % type(layer).__name__)
        for variable in layer.trainable_weights:
            reduction.keep_local(variable)
