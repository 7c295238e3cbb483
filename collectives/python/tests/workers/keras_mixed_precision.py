"""Loss scaling, of mixed_float16 too: where the gradients of one rank alone overflow, all ranks
leave the step out and go on in step.
"""

import numpy as np
import tensorflow as tf

import horovod.keras as hvd_keras
import horovod.tensorflow as hvd
from expected_errors import expect

tf.get_logger().setLevel("ERROR")
hvd.init()
rank, size = hvd.rank(), hvd.size()
keras = tf.keras
KERAS_3 = hasattr(keras.optimizers.Optimizer, "apply")
LossScaleOptimizer = keras.mixed_precision.LossScaleOptimizer


def same_on_all(*values):
    mine = [np.asarray(value).tolist() for value in values]
    for other in hvd.allgather_object(mine):
        assert other == mine, (other, mine)


def scale_of(optimizer):
    return float(optimizer.dynamic_scale if KERAS_3 else optimizer.loss_scale)


def kinds():
    yield keras.optimizers.SGD
    if not KERAS_3:
        yield keras.optimizers.legacy.SGD


def around(make, **options):
    """A LossScaleOptimizer around a DistributedOptimizer, and one in it."""
    yield LossScaleOptimizer(hvd_keras.DistributedOptimizer(make(), **options), initial_scale=8.0)
    yield hvd_keras.DistributedOptimizer(LossScaleOptimizer(make(), initial_scale=8.0), **options)


def gradient_of(rank, number):
    """Scaled by 8. That of the last rank alone overflows in the step 1."""
    return 8.0 * (float("inf") if (rank, number) == (size - 1, 1) else rank + number + 1.0)


def step_of(optimizer, weights, in_graph):

    def step(*gradients):
        if KERAS_3:
            optimizer.apply(list(gradients), weights)
        else:
            unscaled = optimizer.get_unscaled_gradients(list(gradients))
            optimizer.apply_gradients(zip(unscaled, weights))

    return tf.function(step) if in_graph else step


def test_a_step_that_overflows_on_one_rank_is_left_out_by_all():
    for kind in kinds():
        for in_graph in (False, True):
            for optimizer in around(lambda: kind(1.0)):
                weight = tf.Variable([0.0, 0.0])
                step = step_of(optimizer, [weight], in_graph)
                expected = 0.0
                for number in range(3):
                    scale = scale_of(optimizer) if number else 8.0
                    step(tf.fill([2], gradient_of(rank, number)))
                    if number != 1:
                        expected -= np.mean([r + number + 1.0 for r in range(size)]) * 8.0 / scale
                    assert weight.numpy().tolist() == [expected] * 2, (weight, expected)
                    assert scale_of(optimizer) == (4.0 if number else 8.0)


def test_a_local_gradient_that_overflows_is_no_less_a_reason():
    for kind in kinds():
        for optimizer in around(lambda: kind(1.0)):
            weight, own = tf.Variable(0.0), tf.Variable(0.0)
            inner = optimizer if hasattr(optimizer, "register_local_var") \
                else optimizer.inner_optimizer
            inner.register_local_var(own)
            step = step_of(optimizer, [weight, own], True)
            for number in range(2):
                step(tf.constant(8.0), tf.constant(gradient_of(rank, number)))
            assert (float(weight), float(own)) == (-1.0, -(rank + 1.0) / size), (weight, own)
            assert scale_of(optimizer) == 4.0


def test_gradients_of_several_passes_that_overflow():
    for kind in kinds():
        distributed, scaled = around(lambda: kind(1.0), backward_passes_per_step=2)
        for optimizer in (scaled, distributed):
            weight = tf.Variable(0.0)
            step = step_of(optimizer, [weight], True)
            if optimizer is distributed and not KERAS_3:
                expect(ValueError, lambda: step(tf.constant(1.0)), "backward_passes_per_step")
                continue
            for number in range(4):
                assert float(weight) == 0.0
                step(tf.constant(gradient_of(rank, number)))
            expected = -np.mean([8.0 * (r + 3) + 8.0 * (r + 4) for r in range(size)]) / 4.0
            assert float(weight) == expected and scale_of(optimizer) == 4.0


def test_gradients_that_are_aggregated_apart_are_reduced_once():
    for kind in kinds() if not KERAS_3 else ():
        legacy = kind is keras.optimizers.legacy.SGD
        weight = tf.Variable(0.0)
        optimizer = hvd_keras.DistributedOptimizer(kind(1.0), op=hvd.Sum)
        pairs = [(tf.constant(1.0), weight)]
        for number, (arguments, options) in enumerate((
                ((), {"experimental_aggregate_gradients": False}),
                ((None, not legacy), {}),
                ((), {} if legacy else {"skip_gradients_aggregation": True}),
                ((None, legacy), {})), 1):
            aggregated = (optimizer._aggregate_gradients if legacy
                          else optimizer.aggregate_gradients)(pairs)
            assert float(aggregated[0][0]) == size
            already = number < 3 or number == 3 and not legacy
            optimizer.apply_gradients(aggregated if already else pairs, *arguments, **options)
            assert float(weight) == -number * size, (legacy, number, weight)


def test_fit_in_mixed_precision():
    keras.mixed_precision.set_global_policy("mixed_float16")
    keras.utils.set_random_seed(rank)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4), keras.layers.Dense(1)])
    model.compile(hvd_keras.DistributedOptimizer(keras.optimizers.Adam(0.01)), "mse")
    assert type(model.optimizer).__name__.startswith("LossScaleOptimizer")
    x = np.random.RandomState(rank).rand(32, 3).astype(np.float32)
    if rank == size - 1:
        x[8:16] = 60000.0  # the second batch
    steps = hvd.last_step().step if hvd.last_step() else 0
    model.fit(x, x.sum(1, keepdims=True), batch_size=8, epochs=2, shuffle=False, verbose=0,
              callbacks=[hvd_keras.callbacks.BroadcastGlobalVariablesCallback(0)])
    same_on_all(*model.weights, scale_of(model.optimizer))
    assert scale_of(model.optimizer) < 2.0**15
    assert all(np.isfinite(weight).all() for weight in model.get_weights())
    assert hvd.last_step().step == steps + 8  # the callback finds the optimizer


def test_the_scale_belongs_to_the_optimizers_variables():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile(LossScaleOptimizer(hvd_keras.DistributedOptimizer(keras.optimizers.SGD(0.1)),
                                     initial_scale=8.0 * (rank + 1)), "mse")
    model.fit(np.ones((4, 3)), np.ones((4, 1)), batch_size=4, epochs=1, verbose=0,
              callbacks=[hvd_keras.callbacks.BroadcastGlobalVariablesCallback(0)])
    assert scale_of(model.optimizer) == 8.0, scale_of(model.optimizer)


for name, test in [item for item in sorted(globals().items()) if item[0].startswith("test_")]:
    print(name, flush=True)
    test()
hvd.shutdown()
