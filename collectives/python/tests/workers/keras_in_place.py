"""model.fit() in place, through a death and a join within an epoch. Gradients of several batches add up, and each batch is committed: a
joiner has nothing of what the others have added up, and does not ask for a broadcast that they made long ago.
"""

import os
import time

import numpy as np
import tensorflow as tf

import ringmaster.keras as hvd

tf.get_logger().setLevel("ERROR")
PASSES = 13
hvd.init()
tf.keras.utils.set_random_seed(1 + (hvd.rank() if not hvd.is_joining() else 99))
model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
model.compile(hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.01),
                                       backward_passes_per_step=PASSES), "mse")
x = np.random.rand(4, 3).astype(np.float32)


class Slow(tf.keras.callbacks.Callback):

    def on_train_batch_end(self, batch, logs=None):
        state.batch += 1
        self.model.stop_training = state.batch >= int(os.environ["BATCHES"])
        time.sleep(0.02)


@hvd.elastic.run(in_place=True)
def train(state):
    data = tf.data.Dataset.from_tensors((x, x.sum(1))).repeat()
    state.model.fit(data, steps_per_epoch=10 ** 6, verbose=0,
                    callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0), Slow(),
                               hvd.elastic.CommitStateCallback(state)])


state = hvd.elastic.KerasState(model, batch=0)
train(state)
mine = [weight.tolist() for weight in model.get_weights()]
assert hvd.allgather_object(mine) == [mine] * hvd.size()
print("ended at", state.batch, "with", hvd.size(), flush=True)
hvd.shutdown()
