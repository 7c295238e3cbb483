"""Input by sharded_indices(), or (AHEAD) by sharded_batches(), through deaths and joins: each sample counts once an epoch, and the
gradients are the mean over just those that count. As a loop of tf.function, or (FIT) model.fit().

Prints a line for each step of this rank; the test counts them.
"""

import json
import os
import time

import numpy as np
import tensorflow as tf

import ringmaster.keras as hk
import ringmaster.tensorflow as hvd

tf.get_logger().setLevel("ERROR")
SAMPLES, BATCH, EPOCHS, FIT = 203, 12, int(os.environ["EPOCHS"]), "FIT" in os.environ
RATE = 0.5

hvd.init()
# One weight for each sample: a step moves those of its samples by as much as the mean says.
rows = np.eye(SAMPLES, dtype=np.float32)
model = tf.keras.Sequential([tf.keras.Input((SAMPLES,)),
                             tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")])
optimizer = tf.keras.optimizers.SGD(RATE)
sampler = hvd.elastic.ElasticSampler(SAMPLES, seed=5)


def read(own):
    return tf.gather(rows, own), tf.ones([tf.size(own), 1])


if "AHEAD" in os.environ:
    data = hvd.elastic.sharded_batches(sampler, BATCH, read, int(os.environ["AHEAD"]))
else:
    data = hvd.elastic.sharded_indices(sampler, BATCH).map(read)
seen = []  # values of the weights after the last step


def stepped(epoch):
    """What the step has moved is what the sampler says, by the mean over those samples."""
    settled = sampler.last_settled
    moved = model.get_weights()[0][:, 0] - (seen[-1] if seen else np.zeros(SAMPLES, np.float32))
    expected = np.zeros(SAMPLES, np.float32)
    expected[settled.counted] = RATE / max(1, len(settled.counted))
    np.testing.assert_allclose(moved, expected, atol=1e-6)
    seen.append(model.get_weights()[0][:, 0].copy())
    time.sleep(float(os.environ.get("PACE", 0)))
    return {"epoch": epoch, "counted": settled.counted}


def loss_of(target, output):
    return -tf.reduce_mean(output * target)


@tf.function
def step(images, targets):
    with tf.GradientTape() as tape:
        loss = loss_of(targets, model(images))
    tape = hvd.DistributedGradientTape(tape, sampler=sampler)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables),
                                  model.trainable_variables))


def say(line):
    print(json.dumps(dict(line, step=hvd.last_step().step)), flush=True)


def loop(state):
    while state.sampler.epoch < EPOCHS:
        epoch = state.sampler.epoch
        for images, targets in data:
            step(images, targets)
            line = stepped(epoch)
            commit(state, line)


def commit(state, line):
    try:
        state.commit()
    finally:  # also where it says that the world has changed
        say(line)


class Commit(tf.keras.callbacks.Callback):

    def __init__(self, state):
        super().__init__()
        self.state = state
        self.epoch_now = None

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch_now = epoch

    def on_train_batch_end(self, batch, logs=None):
        commit(self.state, stepped(self.epoch_now))


def fit(state):
    while state.sampler.epoch < EPOCHS:
        model.fit(data, initial_epoch=state.sampler.epoch, epochs=state.sampler.epoch + 1,
                  verbose=0, callbacks=[Commit(state)])


@hvd.elastic.run(in_place="IN_PLACE" in os.environ)
def train(state):
    seen[:] = [model.get_weights()[0][:, 0].copy()]
    (fit if FIT else loop)(state)


if FIT:
    model.compile(hk.DistributedOptimizer(optimizer, sampler=sampler), loss_of)
train(hvd.elastic.TensorFlowKerasState(model, optimizer, sampler=sampler))
everyone = hvd.allgather_object(model.get_weights()[0].tolist())
assert all(other == everyone[0] for other in everyone)
hvd.shutdown()
