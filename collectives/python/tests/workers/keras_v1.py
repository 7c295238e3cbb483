"""Keras 2 in the graph mode of TensorFlow 1: model.fit() in a graph, which Keras's session runs."""

import os
import sys

import numpy as np
import tensorflow
import tensorflow.compat.v1 as tf

import ringmaster.keras as hk
import ringmaster.tensorflow as hvd

tf.disable_eager_execution()
tf.logging.set_verbosity(tf.logging.ERROR)
hvd.init()
rank, size = hvd.rank(), hvd.size()
RATE, ROWS = 0.05, 8
X = np.random.RandomState(1).randn(ROWS * size, 3).astype(np.float32)
Y = 3 * X.sum(1, keepdims=True)
OWN = slice(rank * ROWS, (rank + 1) * ROWS)


def make(start=1.0, **options):
    model = tf.keras.Sequential([
        tf.keras.layers.Input((3,)),
        tf.keras.layers.Dense(1, use_bias=False,
                              kernel_initializer=tf.keras.initializers.Constant(start))])
    optimizer = tf.keras.optimizers.SGD(RATE, momentum=0.9)
    model.compile(hk.DistributedOptimizer(optimizer, **options), "mse", metrics=["mae"])
    return model


def fit(model, batch_size=ROWS, epochs=4, callbacks=()):
    model.fit(X[OWN], Y[OWN], batch_size=batch_size, epochs=epochs, verbose=0, shuffle=False,
              callbacks=list(callbacks))


def same_as_one_process(model, steps=4):
    """By so many steps over all rows."""
    weight, velocity = np.full((3, 1), 1.0), np.zeros((3, 1))
    for _ in range(steps):
        velocity = 0.9 * velocity - RATE * 2 * X.T @ (X @ weight - Y) / len(X)
        weight = weight + velocity
    np.testing.assert_allclose(model.get_weights()[0], weight, rtol=1e-4)


def same_everywhere(*values):
    everyone = hvd.allgather_object(values)
    assert all(other == values for other in everyone), everyone


def test_fit_gives_what_one_process_gives():
    model = make()
    fit(model)
    same_as_one_process(model)


def test_several_backward_passes_make_one_step():
    model = make(backward_passes_per_step=2, average_aggregated_gradients=True)
    fit(model, batch_size=ROWS // 2)
    same_as_one_process(model)


def test_callbacks():
    model, seen = make(start=1.0 + rank), []

    class Sees(tf.keras.callbacks.Callback):

        def on_epoch_end(self, epoch, logs=None):
            seen.append([float(logs[name]) for name in ("loss", "mae", "lr")])

    fit(model, batch_size=ROWS // 2, callbacks=[
        hk.callbacks.BroadcastGlobalVariablesCallback(0), hk.callbacks.MetricAverageCallback(),
        hk.callbacks.LearningRateWarmupCallback(RATE, warmup_epochs=2, steps_per_epoch=2),
        hk.callbacks.LearningRateScheduleCallback(RATE, 0.5, start_epoch=2), Sees()])
    same_everywhere(model.get_weights()[0].tolist(), seen)
    np.testing.assert_allclose([rate for _, _, rate in seen[1:]], [RATE, RATE, RATE / 2], rtol=1e-6)


def test_functions_are_computed_at_once():
    assert hk.allreduce(np.float32(rank)) == (size - 1) / 2
    assert hk.broadcast(np.ones(2) * rank, 1).tolist() == [1, 1]
    assert len(hk.allgather(np.ones((2, 1)))) == 2 * size
    model = make(start=1.0 + rank)
    hk.broadcast_global_variables(0)
    assert model.get_weights()[0].tolist() == [[1.0]] * 3


def test_a_model_that_was_saved_goes_on():
    path = os.path.join(sys.argv[1], "%d.h5" % rank)
    model = make()
    fit(model, epochs=2)
    model.save(path)
    tf.keras.backend.clear_session()
    model = hk.load_model(path)
    fit(model, epochs=2)
    same_as_one_process(model)


def test_a_function_that_is_entered_again_goes_on_and_what_was_added_up_is_void():
    model = make(start=1.0 + rank, backward_passes_per_step=2, average_aggregated_gradients=True)

    @hk.elastic.run
    def train(state):
        state.entries += 1
        if state.entries == 1:
            fit(model, epochs=1, callbacks=[hk.elastic.CommitStateCallback(state)])  # one of two
            raise hk.elastic.HostsUpdatedInterrupt(skip_sync=True)
        fit(model, batch_size=ROWS // 2)

    train(hk.elastic.KerasState(model, entries=0))
    same_as_one_process(model)


def test_an_optimizer_for_eager_execution_is_refused():
    try:
        hk.DistributedOptimizer(tensorflow.keras.optimizers.SGD(RATE))
        raise AssertionError("nothing was raised")
    except ValueError as error:
        assert "allowed are those of tf.keras.optimizers.legacy" in str(error), error


for name, test in [item for item in sorted(globals().items()) if item[0].startswith("test_")]:
    print(name, flush=True)
    tf.keras.backend.clear_session()
    test()
hvd.shutdown()
