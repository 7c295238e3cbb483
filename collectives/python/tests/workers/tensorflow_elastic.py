"""A custom loop as Horovod's users write it for TensorFlow 2, elastic: its collectives are inside a
tf.function.
"""

import os
import time

import tensorflow as tf

import ringmaster.tensorflow as hvd

tf.get_logger().setLevel("ERROR")
hvd.init()
model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.01 * hvd.size(), momentum=0.9)


@tf.function
def step(data, reduce):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(data) - 1.0))
    if reduce:
        tape = hvd.DistributedGradientTape(tape)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables),
                                  model.trainable_variables))


step(tf.ones((4, 3)), False)  # makes the optimizer's variables


@(hvd.elastic.run if "PLAIN" not in os.environ else lambda function: function)
def train(state):
    print("enter", state.batch, hvd.size(), flush=True)
    while state.batch < int(os.environ["BATCHES"]):
        time.sleep(0.02)
        step(tf.random.uniform((4, 3)), True)
        state.batch += 1
        state.commit()
    return "done"


state = hvd.elastic.TensorFlowKerasState(model, optimizer, batch=0)
state.register_reset_callbacks([lambda: setattr(optimizer, "learning_rate", 0.01 * hvd.size())])
if "PLAIN" in os.environ:
    hvd.broadcast_variables(model.weights + list(optimizer.variables), root_rank=0)
assert train(state) == "done"
mine = [variable.numpy().tolist() for variable in model.weights] + \
    [float(tf.convert_to_tensor(optimizer.learning_rate)), int(optimizer.iterations)]
for other in hvd.allgather_object(mine):
    assert other == mine, (other, mine)
print("ended at", state.batch, "with", hvd.size(), flush=True)
hvd.shutdown()
