"""DistributedOptimizer for Keras's optimizers and for those of tf.compat.v1."""

import functools

import tensorflow as tf

from ringmaster.process_sets import global_process_set
from ringmaster.reductions import Adasum, Average
from ringmaster.tensorflow.accumulating import Accumulation
from ringmaster.tensorflow.calling import as_it_is
from ringmaster.tensorflow.compression import Compression
from ringmaster.tensorflow.reducing import Reduction, add_local_layers

__all__ = ["DistributedAdasumOptimizer", "DistributedOptimizer", "PartialDistributedOptimizer"]


def DistributedOptimizer(optimizer, name=None, use_locking=False, device_dense="",
                         device_sparse="", compression=Compression.none, sparse_as_dense=False,
                         backward_passes_per_step=1, op=Average, gradient_predivide_factor=1.0,
                         average_aggregated_gradients=False, num_groups=0, groups=None,
                         process_set=global_process_set, scale_local_gradients=True, *,
                         sampler=None):
    """Wraps an optimizer: what it applies is the mean (`op`: or Sum) of the ranks' gradients.

    Returns an object of the optimizer's class that shares its state. A wrong argument is a
    ValueError that names it. Keras's optimizers reduce in apply_gradients(), so also under
    model.fit(); those of tf.compat.v1 in compute_gradients().

    optimizer: a Keras optimizer (2, its legacy ones, or 3), or a tf.compat.v1.train.Optimizer.
    compression: what gradients travel as, see Compression.
    sparse_as_dense: tf.IndexedSlices are made dense. Else the ranks' entries are gathered.
    backward_passes_per_step: gradients of so many calls add up before they are reduced and applied;
        average_aggregated_gradients divides their sum by that number.
    op: Average or Sum; with Adasum gradients are combined by it, before the optimizer's update.
    gradient_predivide_factor: gradients are divided by it before they are added up, and the mean is
        made of the rest after it: for sums that float16 could not hold. Only with Average.
    process_set: the ranks whose gradients are reduced. On the others they stay their own.
    scale_local_gradients: whether the gradients of variables given to its register_local_var() are
        divided by the number of ranks.
    sampler: an ElasticSampler whose sharded_indices() or sharded_batches() feed the loss, which is
        a mean over its rows: the gradients' mean is then over samples, not over ranks, and they
        count as done with it.
    name, use_locking, device_dense, device_sparse, num_groups, groups: for Horovod's scripts. All
        dense gradients travel as one group.
    """
    del device_dense, device_sparse
    if isinstance(backward_passes_per_step, bool) or int(backward_passes_per_step) < 1:
        raise ValueError("backward_passes_per_step: is %r, must be 1 or more"
                         % (backward_passes_per_step,))
    reduction = Reduction("optimizer", compression, sparse_as_dense, op,
                          gradient_predivide_factor, groups, num_groups, process_set,
                          scale_local_gradients, sampler)
    if sampler is not None and int(backward_passes_per_step) > 1:
        raise ValueError("backward_passes_per_step: is %r, must be 1 with a sampler: it counts the "
                         "samples of each batch" % (backward_passes_per_step,))
    accumulation = None
    if int(backward_passes_per_step) > 1:
        accumulation = Accumulation(int(backward_passes_per_step), average_aggregated_gradients)
    if isinstance(optimizer, tf.compat.v1.train.Optimizer):
        return _DistributedV1(optimizer, name, use_locking, reduction, accumulation)
    return _wrap_keras(optimizer, reduction, accumulation)


def PartialDistributedOptimizer(optimizer, name=None, device_dense="", device_sparse="",
                                compression=Compression.none, sparse_as_dense=False,
                                gradient_predivide_factor=1.0, op=Average, num_groups=0,
                                groups=None, backward_passes_per_step=1,
                                average_aggregated_gradients=False,
                                process_set=global_process_set, local_layers=None,
                                scale_local_gradients=True):
    """A DistributedOptimizer for which the gradients of `local_layers`, a Keras layer or a list of
    them, stay each rank's own; divided by the number of ranks unless scale_local_gradients is
    False.
    """
    wrapped = DistributedOptimizer(optimizer, name, False, device_dense, device_sparse,
                                   compression, sparse_as_dense, backward_passes_per_step, op,
                                   gradient_predivide_factor, average_aggregated_gradients,
                                   num_groups, groups, process_set, scale_local_gradients)
    add_local_layers(wrapped._ringmaster_reduction, local_layers)
    return wrapped


def DistributedAdasumOptimizer(optimizer, name=None, use_locking=False, device_dense="",
                               device_sparse="", compression=Compression.none,
                               backward_passes_per_step=1):
    """DistributedOptimizer(op=Adasum)."""
    return DistributedOptimizer(optimizer, name, use_locking, device_dense, device_sparse,
                                compression, backward_passes_per_step=backward_passes_per_step,
                                op=Adasum)


class _HasLocalVariables:

    def register_local_var(self, var):
        """The gradient of this variable stays this rank's own, as those of the layers of a
        PartialDistributedOptimizer.
        """
        self._ringmaster_reduction.keep_local(var)


# ---- Keras


class _Keras(_HasLocalVariables):
    """What is added to the class of any Keras optimizer."""

    @as_it_is
    def _ringmaster_apply(self, gradients, variables, apply, loss_is_scaled=False):
        """apply(reduced gradients)."""
        reduce = functools.partial(self._ringmaster_reduction.reduce, variables=variables,
                                   all_finite_or_none=loss_is_scaled)
        if self._ringmaster_accumulation is None:
            return apply(reduce(gradients))
        self._ringmaster_build(variables)

        def reduce_and_apply(sums):
            return _in_a_graph(apply(reduce(sums)))

        def skip():
            return _in_a_graph(self.iterations.assign_add(1))

        done = self._ringmaster_accumulation.step(gradients, variables, reduce_and_apply, skip)
        if _in_a_graph(done) is None:
            return self.iterations
        self._ringmaster_accumulation.initialize(tf.compat.v1.keras.backend.get_session())
        return tf.group(done)

    _ringmaster_reduced = False  # the gradients that come now are those of all ranks

    def _ringmaster_with_reduced(self, function, *args, **kwargs):
        self._ringmaster_reduced = True
        try:
            return function(*args, **kwargs)
        finally:
            self._ringmaster_reduced = False

    def _ringmaster_build(self, variables):
        """Its own variables: a branch of a graph can't make them."""
        with tf.init_scope():
            if hasattr(self, "_create_all_weights"):  # of the legacy ones
                self._create_all_weights(variables)
            elif not getattr(self, "built", False):
                self.build(variables)


class _Keras2(_Keras):
    """With the method and the flags by which gradients are aggregated before they are applied:
    a LossScaleOptimizer does that, which looks in between whether they are finite on all ranks.
    """

    @as_it_is
    def aggregate_gradients(self, grads_and_vars):
        """The gradients of all ranks, as pairs for apply_gradients() with
        skip_gradients_aggregation=True.
        """
        if self._ringmaster_reduced:
            return super().aggregate_gradients(grads_and_vars)
        return self._ringmaster_aggregate(grads_and_vars)

    @as_it_is
    def apply_gradients(self, grads_and_vars, *args, **kwargs):
        """As the optimizer's own, with the gradients of all ranks, unless they are that already."""
        own = functools.partial(self._ringmaster_with_reduced, super().apply_gradients)
        if self._ringmaster_skips(args, kwargs):
            return own(grads_and_vars, *args, **kwargs)
        gradients, variables = _unzip(grads_and_vars)
        return self._ringmaster_apply(
            gradients, variables, lambda reduced: own(list(zip(reduced, variables)), *args,
                                                      **kwargs), _is_loss_scaling(self))

    def _ringmaster_aggregate(self, grads_and_vars):
        if self._ringmaster_accumulation is not None:
            raise ValueError("backward_passes_per_step: is above 1, must be 1 where gradients are "
                             "aggregated before they are applied, as in a LossScaleOptimizer "
                             "around a DistributedOptimizer; one around the LossScaleOptimizer "
                             "may have more")
        gradients, variables = _unzip(grads_and_vars)
        reduced = self._ringmaster_reduction.reduce(gradients, variables, all_finite_or_none=True)
        return list(zip(reduced, variables))

    @staticmethod
    def _ringmaster_skips(args, kwargs):
        """Whether arguments of apply_gradients() say that the gradients are reduced already."""
        # The only positional one that is a bool: skip_gradients_aggregation.
        return any(arg is True for arg in args) or \
            bool(kwargs.get("skip_gradients_aggregation")) or \
            not kwargs.get("experimental_aggregate_gradients", True)


class _Legacy(_Keras2):
    """Keras 2's optimizers of before 2.11, which have other names for that."""

    @as_it_is
    def _aggregate_gradients(self, grads_and_vars):
        if self._ringmaster_reduced:
            return super()._aggregate_gradients(grads_and_vars)
        return self._ringmaster_aggregate(grads_and_vars)

    @staticmethod
    def _ringmaster_skips(args, kwargs):
        # The only positional one that is a bool.
        aggregates = [arg for arg in args if isinstance(arg, bool)] or \
            [kwargs.get("experimental_aggregate_gradients", True)]
        return not aggregates[0]


class _Keras3(_Keras):

    @as_it_is
    def apply(self, grads, trainable_variables=None):
        """As the optimizer's own, with the gradients of all ranks."""
        own = super().apply
        if self._ringmaster_reduced:
            return own(grads, trainable_variables)
        return self._ringmaster_apply(list(grads), self._ringmaster_variables(trainable_variables),
                                      lambda reduced: own(reduced, trainable_variables),
                                      _is_loss_scaling(self))

    def _ringmaster_variables(self, given):
        return self._trainable_variables if given is None else list(given)

    @as_it_is
    def _ringmaster_scaled(self, apply, grads, trainable_variables):
        """apply() of a LossScaleOptimizer around this one, with the gradients of all ranks."""
        return self._ringmaster_apply(
            list(grads), self._ringmaster_variables(trainable_variables),
            lambda reduced: self._ringmaster_with_reduced(apply, reduced, trainable_variables),
            loss_is_scaled=True)


def _in_a_graph(operation):
    """`operation` in a graph of tf.compat.v1, which runs nothing that it isn't told to."""
    return None if tf.compat.v1.executing_eagerly_outside_functions() else operation


def _is_loss_scaling(optimizer):
    return hasattr(optimizer, "inner_optimizer")


@functools.lru_cache(None)
def _reduce_before_loss_scaling():
    """Has Keras 3's LossScaleOptimizer, which compile() puts around the optimizer for
    mixed_float16, reduce before it looks whether gradients are finite.

    It asks the optimizer in it for nothing until it has found them so. A rank whose own gradients
    overflow would then leave out a reduction in which the others wait for it.
    """
    kind = tf.keras.mixed_precision.LossScaleOptimizer
    own = kind.apply

    @functools.wraps(own)
    def apply(self, grads, trainable_variables=None):
        if not isinstance(self.inner_optimizer, _Keras3):
            return own(self, grads, trainable_variables)
        if not self.built:  # here, because a branch of a graph can't make variables
            with tf.init_scope():
                self.build(trainable_variables)
        return self.inner_optimizer._ringmaster_scaled(functools.partial(own, self), grads,
                                                       trainable_variables)

    kind.apply = as_it_is(apply)


def distributed_in(optimizer):
    """A Keras optimizer that DistributedOptimizer() has made: this one, or the one that this one
    scales the loss for. Else None.
    """
    for one in (optimizer, getattr(optimizer, "inner_optimizer", None)):
        if isinstance(one, _Keras):
            return one
    return None


def is_distributed(optimizer):
    """Whether there is such a one."""
    return distributed_in(optimizer) is not None


def _unzip(grads_and_vars):
    pairs = list(grads_and_vars)
    return [gradient for gradient, _ in pairs], [variable for _, variable in pairs]


def _wrap_keras(optimizer, reduction, accumulation):
    kind = type(optimizer)
    if is_distributed(optimizer):
        raise ValueError("optimizer: is a DistributedOptimizer already")
    if not hasattr(optimizer, "apply_gradients") or not hasattr(optimizer, "get_config"):
        raise ValueError("optimizer: is a %s, must be a Keras optimizer or a "
                         "tf.compat.v1.train.Optimizer" % kind.__name__)
    added = _methods_for(kind)
    if added is not _Legacy and _in_a_graph(added):
        # Here, because fit() would fail without naming the reason.
        raise ValueError("optimizer: is a %s that Keras has for eager execution, and that is "
                         "switched off: allowed are those of tf.keras.optimizers.legacy and of "
                         "tf.compat.v1.train" % kind.__name__)
    # Its name and module are the optimizer's: a saved model can be loaded without Ringmaster.
    wrapped = type(kind.__name__, (added, kind), {"__module__": kind.__module__})
    result = wrapped.__new__(wrapped)
    # The same state, not a copy, and past Keras's own bookkeeping of attributes.
    result.__dict__.update(optimizer.__dict__, _ringmaster_reduction=reduction,
                           _ringmaster_accumulation=accumulation)
    return result


def _methods_for(kind):
    if hasattr(kind, "apply"):
        _reduce_before_loss_scaling()
        return _Keras3
    return _Keras2 if hasattr(kind, "aggregate_gradients") else _Legacy


# ---- tf.compat.v1


class _DistributedV1(_HasLocalVariables, tf.compat.v1.train.Optimizer):
    """Has the optimizer that it was given. compute_gradients() reduces, unless several backward
    passes add up: then apply_gradients() does.
    """

    def __init__(self, optimizer, name, use_locking, reduction, accumulation):
        super().__init__(use_locking, name or "Distributed" + type(optimizer).__name__)
        self._optimizer = optimizer
        self._ringmaster_reduction = reduction
        self._ringmaster_accumulation = accumulation

    @as_it_is
    def compute_gradients(self, *args, **kwargs):
        gradients, variables = _unzip(self._optimizer.compute_gradients(*args, **kwargs))
        if self._ringmaster_accumulation is None:
            gradients = self._ringmaster_reduction.reduce(gradients, variables)
        return list(zip(gradients, variables))

    @as_it_is
    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        if self._ringmaster_accumulation is None:
            return self._optimizer.apply_gradients(grads_and_vars, global_step, name)
        gradients, variables = _unzip(grads_and_vars)
        with tf.init_scope():
            self._optimizer._create_slots(variables)

        def reduce_and_apply(sums):
            reduced = self._ringmaster_reduction.reduce(sums, variables)
            return self._optimizer.apply_gradients(list(zip(reduced, variables)), global_step)

        def skip():
            return None if global_step is None else global_step.assign_add(1)

        return self._ringmaster_accumulation.step(gradients, variables, reduce_and_apply, skip)

    def get_slot(self, *args, **kwargs):
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self, *args, **kwargs):
        return self._optimizer.get_slot_names(*args, **kwargs)

    def variables(self, *args, **kwargs):
        return self._optimizer.variables(*args, **kwargs)
