"""Tapes, optimizers, SyncBatchNormalization, callbacks and load_model, on all ranks: what one
process gets with the gradients of all, and the same weights everywhere.
"""

import os
import pkgutil
import sys

import horovod
import horovod.keras as hvd_keras
import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf
from expected_errors import expect
from ringmaster import _core

tf.get_logger().setLevel("ERROR")
hvd.init()
rank, size = hvd.rank(), hvd.size()
keras = tf.keras
KERAS_3 = hasattr(keras.optimizers.Optimizer, "apply")
folder = sys.argv[1]


def rows(of):
    return np.random.RandomState(of).rand(6, 3).astype(np.float32)


def same_on_all(variables):
    mine = [np.asarray(variable).tolist() for variable in variables]
    for other in hvd.allgather_object(mine):
        assert other == mine, (other, mine)


def both(function):
    for one in (function, tf.function(function)):
        yield one()


def own_gradient(of):
    return rows(of).mean(0)


def gradients_with(tape_of):
    """Of the mean of rows @ weight, by eager mode and by a graph, as arrays."""
    weight, bias = tf.Variable(np.ones((3, 1), np.float32)), tf.Variable(2.0)

    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.matmul(rows(rank), weight)) + bias * float(rank)
        return tape_of(tape, bias).gradient(loss, [weight, bias])

    return [[np.asarray(part)[..., 0] if np.ndim(part) else float(part) for part in found]
            for found in both(step)]


def test_tapes():
    mean = np.mean([own_gradient(r) for r in range(size)], 0)
    for options in ({}, {"gradient_predivide_factor": 2.0}, {"groups": 2},
                    {"process_set": hvd.global_process_set}):
        for weight, bias in gradients_with(lambda tape, _: hvd.DistributedGradientTape(
                tape, **options)):
            np.testing.assert_allclose(weight, mean, rtol=1e-5)
            assert bias == (size - 1) / 2
    for weight, _ in gradients_with(lambda tape, _: hvd.DistributedGradientTape(tape, op=hvd.Sum)):
        np.testing.assert_allclose(weight, mean * size, rtol=1e-5)
    for weight, _ in gradients_with(lambda tape, _: hvd.DistributedGradientTape(
            tape, compression=hvd.Compression.fp16)):
        np.testing.assert_allclose(weight, mean, rtol=1e-2)

    def with_local_bias(tape, bias):
        result = hvd.DistributedGradientTape(tape)
        result.register_local_source(bias)
        return result

    for weight, bias in gradients_with(with_local_bias):
        np.testing.assert_allclose(weight, mean, rtol=1e-5)
        np.testing.assert_allclose(bias, rank / size)


def test_tapes_keep_the_shape_of_sources_and_sparse_gradients():
    table = tf.Variable(np.ones((4, 2), np.float32))
    for dense in (False, True):
        with tf.GradientTape(persistent=True) as tape:
            loss = tf.reduce_sum(tf.gather(table, [rank, 0])) * 2.0
        tape = hvd.DistributedGradientTape(tape, sparse_as_dense=dense)
        found = tape.gradient(loss, {"table": table, "unused": tf.Variable(1.0)})
        assert found["unused"] is None and isinstance(found["table"], tf.IndexedSlices) != dense
        expected = [sum((r == row) + (row == 0) for r in range(size)) * 2 / size
                    for row in range(4)]
        assert tf.convert_to_tensor(found["table"])[:, 0].numpy().tolist() == expected
    expect(ValueError, lambda: hvd.DistributedGradientTape(tape), "already")
    expect(ValueError, lambda: hvd.DistributedGradientTape(tf.GradientTape(), op=hvd.Max), "Max")


def test_partial_tapes():
    layers = [keras.layers.Dense(1, kernel_initializer="ones") for _ in range(2)]
    for layer in layers:
        layer.build((None, 3))
    variables = layers[0].trainable_weights + layers[1].trainable_weights
    with tf.GradientTape() as tape:
        loss = sum(tf.reduce_mean(layer(rows(rank))) for layer in layers)
    tape = hvd.PartialDistributedGradientTape(tape, local_layers=layers[1])
    found = [gradient.numpy() for gradient in tape.gradient(loss, variables)]
    mean = np.mean([own_gradient(r) for r in range(size)], 0)
    np.testing.assert_allclose(found[0][:, 0], mean, rtol=1e-5)
    np.testing.assert_allclose(found[2][:, 0], own_gradient(rank) / size, rtol=1e-5)


def optimizers():
    yield lambda: keras.optimizers.SGD(0.5)
    yield lambda: keras.optimizers.Adam(0.1)
    if not KERAS_3:
        yield lambda: keras.optimizers.legacy.SGD(0.5, momentum=0.9)
        yield lambda: keras.optimizers.legacy.Adam(0.1)
    yield lambda: tf.compat.v1.train.GradientDescentOptimizer(0.5)


def test_optimizers_apply_the_mean():
    for make in optimizers():
        for in_graph in (False, True):
            mine, alone = [tf.Variable(np.ones(3, np.float32)) for _ in range(2)]
            distributed, plain = hvd.DistributedOptimizer(make()), make()

            def step(gradient):
                if isinstance(plain, tf.compat.v1.train.Optimizer):  # reduces as it computes
                    found = distributed.compute_gradients(
                        lambda: tf.reduce_sum(mine * gradient), [mine])
                    distributed.apply_gradients(found)
                else:
                    distributed.apply_gradients([(gradient, mine)])

            run = tf.function(step) if in_graph else step
            for number in range(3):
                gradients = [rows(number + r)[0] for r in range(size)]
                run(tf.constant(gradients[rank]))
                plain.apply_gradients([(tf.constant(np.mean(gradients, 0)), alone)])
            np.testing.assert_allclose(mine.numpy(), alone.numpy(), rtol=1e-4)
            same_on_all([mine])
    expect(ValueError, lambda: hvd.DistributedOptimizer(3), "optimizer: is a int")
    expect(ValueError, lambda: hvd.DistributedOptimizer(distributed, backward_passes_per_step=0),
           "backward_passes_per_step: is 0")


def test_several_backward_passes():
    for make in list(optimizers())[:-1]:
        for average in (False, True):
            mine, alone = [tf.Variable(np.ones(3, np.float32)) for _ in range(2)]
            distributed = hvd_keras.DistributedOptimizer(
                make(), backward_passes_per_step=2, average_aggregated_gradients=average)
            plain = make()
            step = tf.function(lambda gradient: distributed.apply_gradients([(gradient, mine)]))
            for number in range(4):
                step(tf.constant(rows(number + rank)[0]))
                if number % 2 == 0:
                    plain.iterations.assign_add(1)  # Horovod counts every pass
                else:
                    both_passes = [np.mean([rows(n + r)[0] for r in range(size)], 0)
                                   for n in (number - 1, number)]
                    total = np.sum(both_passes, 0) / (2 if average else 1)
                    plain.apply_gradients([(tf.constant(total), alone)])
                    np.testing.assert_allclose(mine.numpy(), alone.numpy(), rtol=1e-4)
            assert int(distributed.iterations) == 4


def model_of(seed, *more):
    keras.utils.set_random_seed(seed)
    return keras.Sequential([keras.Input((3,)), keras.layers.Dense(4, activation="tanh"), *more,
                             keras.layers.Dense(1)])


def data(of=rank, count=32):
    x = np.random.RandomState(of).rand(count, 3).astype(np.float32)
    return x, x.sum(1, keepdims=True)


class Rates(keras.callbacks.Callback):

    def on_train_begin(self, logs=None):
        self.rates = []

    def on_train_batch_end(self, batch, logs=None):
        self.rates.append(float(tf.convert_to_tensor(self.model.optimizer.learning_rate)))


def test_fit():
    model = model_of(rank)
    model.compile(hvd_keras.DistributedOptimizer(keras.optimizers.Adam(0.01 * size)), "mse",
                  jit_compile=True)  # which can't be, and is undone
    rates = Rates()
    warmup = hvd_keras.callbacks.LearningRateWarmupCallback(0.01 * size, warmup_epochs=2,
                                                            verbose=1)
    steps = hvd.last_step().step if hvd.last_step() else 0
    history = model.fit(*data(), batch_size=8, epochs=3, verbose=0, callbacks=[
        hvd_keras.callbacks.BroadcastGlobalVariablesCallback(0),
        hvd_keras.callbacks.MetricAverageCallback(), warmup, rates,
        hvd_keras.callbacks.LearningRateScheduleCallback(0.01 * size, 0.1, start_epoch=2)])
    same_on_all(model.weights)
    same_on_all(history.history["loss"])
    assert history.history["loss"][-1] < history.history["loss"][0]
    assert hvd.last_step().step == steps + 12  # one for each batch
    first = 0.01 * size * (1 / 8 * (size - 1) + 1) / size
    np.testing.assert_allclose(rates.rates[0], first, rtol=1e-4)
    np.testing.assert_allclose(rates.rates[7], 0.01 * size, rtol=1e-4)
    np.testing.assert_allclose(rates.rates[-1], 0.01 * size, rtol=1e-4)
    path = os.path.join(folder, "model-%d.keras" % rank)
    model.save(path)
    loaded = hvd_keras.load_model(path)
    assert int(loaded.optimizer.iterations) == 12
    loaded.fit(*data(rank + 10), batch_size=8, epochs=1, verbose=0)
    same_on_all(loaded.weights)
    alone = keras.models.load_model(path)  # needs nothing of ours
    assert not hasattr(alone.optimizer, "_ringmaster_reduction")


def test_the_warm_up_takes_the_size_that_the_step_began_with():
    """Else ranks that hear of a fault before a batch and after it go on with different rates."""
    warmup = hvd_keras.callbacks.LearningRateWarmupCallback(0.3, warmup_epochs=5,
                                                            steps_per_epoch=10)
    before, size_now = warmup.multiplier(2), _core.size
    _core.size = lambda: size_now() + 1
    try:
        assert warmup.multiplier(2) == before, (warmup.multiplier(2), before)
    finally:
        _core.size = size_now


def test_a_constant_multiplier_counts_from_its_start_epoch():
    model = model_of(0)
    model.compile(keras.optimizers.SGD(0.25), "mse")
    for staircase, rates in ((True, [0.25, 1.0, 0.5, 0.25, 0.25]),
                             (False, [0.25, 0.5**0.5, 0.5**1.5, 0.5**2.5, 0.5**2.5])):
        model.optimizer.learning_rate = 0.25
        schedule = hvd_keras.callbacks.LearningRateScheduleCallback(
            1.0, 0.5, start_epoch=1, end_epoch=4, staircase=staircase, steps_per_epoch=2)
        schedule.set_model(model)
        for epoch, rate in enumerate(rates):
            schedule.on_epoch_begin(epoch)
            for batch in range(2):
                schedule.on_train_batch_begin(batch)
            np.testing.assert_allclose(float(tf.convert_to_tensor(model.optimizer.learning_rate)),
                                       rate, rtol=1e-6)


def test_best_model_checkpoint():
    path = os.path.join(folder, "best-%d.keras" % rank)
    model = model_of(0)
    model.compile("sgd", "mse")
    model.fit(*data(), epochs=1, verbose=0, callbacks=[
        hvd_keras.callbacks.BestModelCheckpoint(monitor="loss", filepath=path)])
    assert os.path.exists(path) == (rank == 0)


def test_partial_optimizer():
    local = keras.layers.Dense(4)
    model = model_of(0, local)
    model.compile(hvd_keras.PartialDistributedOptimizer(keras.optimizers.SGD(0.1),
                                                        local_layers=[local]), "mse")
    model.fit(*data(), batch_size=8, epochs=1, verbose=0)
    same_on_all(model.layers[0].weights)
    if size > 1:
        everyone = hvd.allgather_object(local.get_weights()[0].tolist())
        assert everyone[0] != everyone[1]


def test_registered_local_variables():
    local = keras.layers.Dense(4)
    model = model_of(rank, local)
    optimizer = hvd_keras.DistributedOptimizer(keras.optimizers.SGD(0.1))
    for variable in local.trainable_weights:
        optimizer.register_local_var(variable)
    expect(ValueError, lambda: optimizer.register_local_var("kernel"), "var: is a str")
    model.compile(optimizer, "mse")
    model.fit(*data(), batch_size=8, epochs=1, verbose=0, callbacks=[
        hvd_keras.callbacks.BroadcastGlobalVariablesCallback(
            0, local_variables=local.trainable_weights)])
    same_on_all(model.layers[0].weights)
    if size > 1:
        everyone = hvd.allgather_object(local.get_weights()[0].tolist())
        assert everyone[0] != everyone[1]


def test_sync_batch_normalization():
    x = np.random.RandomState(7).rand(4 * size, 5, 3).astype(np.float32)
    weight = np.random.RandomState(8).rand(4 * size, 5, 3).astype(np.float32)

    def passed_through(layer, inputs, weights, average):
        inputs = tf.constant(inputs)
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            result = layer(inputs, training=True)
            loss = tf.reduce_sum(result * weights)
        return [np.asarray(part) for part in (result, tape.gradient(loss, inputs),
                                              layer.moving_mean, layer.moving_variance)]

    mine = slice(4 * rank, 4 * rank + 4)
    synchronized = hvd.SyncBatchNormalization()
    found = passed_through(synchronized, x[mine], weight[mine], True)
    options = {} if KERAS_3 else {"fused": False}
    expected = passed_through(keras.layers.BatchNormalization(**options), x, weight, False)
    np.testing.assert_allclose(found[0], expected[0][mine], atol=1e-4)
    np.testing.assert_allclose(found[1], expected[1][mine], atol=1e-3)
    np.testing.assert_allclose(found[2], expected[2], atol=1e-5)
    np.testing.assert_allclose(found[3], expected[3], atol=1e-5)
    model = model_of(0, hvd.SyncBatchNormalization())
    model.compile(hvd_keras.DistributedOptimizer(keras.optimizers.SGD(0.1)), "mse")
    model.fit(*data(), batch_size=8, epochs=1, verbose=0)
    same_on_all(model.weights)
    model.predict(data()[0], verbose=0)


def test_metrics_whose_names_keras_has_numbered_belong_together_by_their_order():
    # As on a survivor that has made more metrics than a joiner. "auc_10" sorts before "auc_9".
    names = ("auc_9", "auc_10") if rank == 0 else ("auc", "auc_1")
    logs = dict(zip(names, (float(rank), 10.0 + rank)), loss=1.0)
    hvd_keras.callbacks.MetricAverageCallback().on_epoch_end(0, logs)
    mean = (size - 1) / 2
    assert logs == dict(zip(names, (mean, 10 + mean)), loss=1.0), logs


def test_metrics_of_any_shape_are_averaged():
    logs = {"loss": float(rank), "recall": np.float32([rank, 10 + rank]),
            "table": tf.constant([[rank, 1.0], [2.0, 3.0]])}
    hvd_keras.callbacks.MetricAverageCallback().on_epoch_end(0, logs)
    mean = (size - 1) / 2
    assert type(logs["loss"]) is float and logs["loss"] == mean
    np.testing.assert_array_equal(logs["recall"], [mean, 10 + mean])
    np.testing.assert_array_equal(logs["table"], [[mean, 1], [2, 3]])


def test_arguments_by_their_places_are_horovods():
    rows = hvd.reducescatter(tf.ones([2 * size]), "", hvd.Compression.none, hvd.Sum, None,
                             hvd.global_process_set, True, 0.5, 4.0)
    assert rows.numpy().tolist() == [2.0 * size] * 2
    total = hvd.grouped_allreduce([tf.ones([1])], None, "", "", hvd.Compression.none, hvd.Sum, 1.0,
                                  1.0, hvd.global_process_set, True, "by_place")
    assert total[0].numpy().tolist() == [size]
    optimizer = hvd_keras.DistributedOptimizer(
        keras.optimizers.SGD(0.1), None, "", "", hvd.Compression.none, False, 1.0, hvd.Average, 2,
        True)
    weight = tf.Variable([1.0])
    for wanted in (1.0, 0.9):
        optimizer.apply_gradients([(tf.constant([1.0]), weight)])
        np.testing.assert_allclose(weight.numpy(), [wanted])
    for places, wanted in (((), (False, "epoch")), ((True,), (True, "epoch")),
                           ((False, "min", 7), (False, 7)), (("min", 7), (False, 7)),
                           (("min",), (False, "epoch"))):
        callback = hvd_keras.callbacks.BestModelCheckpoint("loss", 0, *places)
        assert (callback.save_weights_only, callback.save_freq) == wanted, places
        if "min" in places:
            assert callback.mode == "min" if KERAS_3 else callback.monitor_op is np.less, places


def test_horovods_modules():
    # Before the walk imports them.
    assert hvd.mpi_ops._allreduce(tf.ones([2])).numpy().tolist() == [size] * 2
    assert hvd.mpi_ops._allreduce(tf.ones([2]), op=hvd.mpi_ops.Average).numpy().tolist() == [1, 1]
    assert hvd.functions.broadcast_object is hvd.broadcast_object
    assert hvd.compression.Compression is hvd.Compression
    names = [module.name for module in pkgutil.walk_packages(horovod.__path__, "horovod.")
             if module.name.startswith(("horovod.tensorflow", "horovod.keras"))]
    assert {"horovod.tensorflow.keras.callbacks", "horovod.keras.elastic"} < set(names)
    for name in names:
        module = __import__(name, fromlist=["x"])
        for exported in module.__all__:
            found = getattr(module, exported)
            assert not callable(found) or found.__doc__, (name, exported)


def test_small_functions():
    assert hvd_keras.allreduce(float(rank)).numpy() == (size - 1) / 2
    assert hvd_keras.allgather([rank]).numpy().tolist() == list(range(size))
    assert hvd_keras.broadcast(rank, size - 1).numpy() == size - 1
    assert hvd_keras.reducescatter(np.ones(size), op=hvd.Sum).numpy().tolist() == [size]
    expect(RuntimeError, lambda: hvd_keras.broadcast_global_variables(0), "eager")
    expect(ValueError, lambda: hvd_keras.callbacks.LearningRateScheduleCallback(None, 1), "None")


for name, test in [item for item in sorted(globals().items()) if item[0].startswith("test_")]:
    print(name, flush=True)
    test()
hvd.shutdown()
