"""Batch normalisation with the mean and variance of all ranks' batches."""

import tensorflow as tf

from ringmaster import _core
from ringmaster.process_sets import global_process_set
from ringmaster.reductions import Sum
from ringmaster.tensorflow import gradients
from ringmaster.tensorflow.calling import as_it_is, name_of

__all__ = ["SyncBatchNormalization"]


class SyncBatchNormalization(tf.keras.layers.BatchNormalization):
    """In training as tf.keras.layers.BatchNormalization, over the samples of all ranks; else the
    same as it.

    Arguments and weights are its own; `fused` must be False. Ranks may have different numbers of
    samples, also none. The gradient flows through the statistics, too. `process_set`: the ranks
    whose samples count.
    """

    def __init__(self, fused=False, process_set=global_process_set, **kwargs):
        if fused:
            raise ValueError("fused: is True, allowed is False")
        kwargs.pop("synchronized", None)
        super().__init__(**kwargs)
        self.fused = False
        self._ringmaster_set = process_set

    def get_config(self):
        config = super().get_config()
        config.pop("synchronized", None)
        return config

    def call(self, inputs, training=None, mask=None):
        if not training or not self.trainable or not _core.is_initialized():
            return super().call(inputs, training=training, mask=mask)
        axis = self.axis[0] if isinstance(self.axis, (list, tuple)) else self.axis
        values = tf.cast(inputs, tf.float64 if inputs.dtype == tf.float64 else tf.float32)
        axis %= values.shape.rank
        others = [dim for dim in range(values.shape.rank) if dim != axis]
        broadcast_shape = [1] * values.shape.rank
        broadcast_shape[axis] = -1

        def along(vector):
            return tf.reshape(tf.cast(vector, values.dtype), broadcast_shape)

        weights = tf.ones_like(values)
        if mask is not None:
            shape = mask.shape.as_list() + [1] * (values.shape.rank - mask.shape.rank)
            weights *= tf.cast(tf.reshape(mask, [-1 if n is None else n for n in shape]),
                               values.dtype)
        count = tf.reduce_sum(weights, others)
        count, mean = self._totals(count, tf.reduce_sum(values * weights, others), "mean")
        centered = values - along(mean)
        _, variance = self._totals(tf.reduce_sum(weights, others),
                                   tf.reduce_sum(tf.square(centered) * weights, others),
                                   "variance")
        self._update(self.moving_mean, mean)
        self._update(self.moving_variance, variance)
        result = centered * along(tf.math.rsqrt(variance + self.epsilon))
        if self.scale:
            result *= along(self.gamma)
        if self.center:
            result += along(self.beta)
        return tf.cast(result, inputs.dtype)

    @as_it_is
    def _totals(self, count, sums, what):
        """(values of all ranks for each feature, mean over them): count and sum travel together, so
        that a rank that dies is in both or in neither.
        """
        # The layer's own name is no name for this: Keras numbers those that it makes up by how many
        # layers the process has made, and a joiner has made fewer than the others. What is the same
        # on all ranks is the order in which layers are called: a graph counts its own calls, and in
        # eager mode the next layer asks when this one has its answer.
        name = "%s.set%d" % (what, self._ringmaster_set.number())
        total, = gradients.allreduce([tf.stack([count, sums])],
                                     name_of("batch_norm", name, self._ringmaster_set), Sum, 1.0,
                                     1.0, self._ringmaster_set)
        return total[0], total[1] / tf.maximum(total[0], 1)

    def _update(self, moving, new):
        old = tf.cast(tf.convert_to_tensor(moving), new.dtype)
        moving.assign(tf.cast(old * self.momentum + new * (1 - self.momentum), moving.dtype))
