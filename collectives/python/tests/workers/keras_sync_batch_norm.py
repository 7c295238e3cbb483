"""A training function that makes its model anew whenever it is entered, with normalisation over all
ranks: Keras numbers the names of layers by how many this process has made, so those of survivors
are other ones than a joiner's. With IN_GRAPH=1 a step is a tf.function.
"""

import os
import time

import tensorflow as tf

import ringmaster.tensorflow as hvd

tf.get_logger().setLevel("ERROR")
hvd.init()


def make_model():
    return tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(4),
                                hvd.SyncBatchNormalization(), tf.keras.layers.Dense(2),
                                hvd.SyncBatchNormalization(), tf.keras.layers.Dense(1)])


@hvd.elastic.run
def train(state):
    model = make_model()
    optimizer = tf.keras.optimizers.SGD(0.01)
    if state.weights is None:
        state.weights = hvd.broadcast_object(model.get_weights())
    model.set_weights(state.weights)
    print("enter", hvd.size(), model.layers[1].name, flush=True)

    def step(data):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(data, training=True) - 1.0))
        tape = hvd.DistributedGradientTape(tape)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables),
                                      model.trainable_variables))

    if "IN_GRAPH" in os.environ:
        step = tf.function(step)
    while state.step < int(os.environ["STEPS"]):
        step(tf.random.uniform((4, 3)))
        time.sleep(0.02)
        state.weights = model.get_weights()
        state.step += 1
        state.commit()


state = hvd.elastic.ObjectState(weights=None, step=0)
train(state)
mine = [weight.tolist() for weight in state.weights]
assert hvd.allgather_object(mine) == [mine] * hvd.size()
print("ended with", hvd.size(), flush=True)
hvd.shutdown()
