"""model.fit() under elastic.run, as Horovod's users write it. Each epoch has 40 batches."""

import os
import time

import numpy as np
import tensorflow as tf

import ringmaster.keras as hvd

tf.get_logger().setLevel("ERROR")
hvd.init()
tf.keras.utils.set_random_seed(1 + (hvd.rank() if not hvd.is_joining() else 99))
model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(4),
                             tf.keras.layers.Dense(1)])
model.compile(hvd.DistributedOptimizer(tf.keras.optimizers.Adam(0.001 * hvd.size())), "mse")
x = np.random.rand(40 * 4, 3).astype(np.float32)


class Slow(tf.keras.callbacks.Callback):

    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.02)


@hvd.elastic.run
def train(state):
    print("enter", state.epoch, hvd.size(), flush=True)
    state.model.fit(x, x.sum(1), batch_size=4, epochs=int(os.environ["EPOCHS"]) - state.epoch,
                    verbose=0, callbacks=[Slow(), hvd.callbacks.MetricAverageCallback(),
                                          hvd.elastic.UpdateEpochStateCallback(state),
                                          hvd.elastic.UpdateBatchStateCallback(state),
                                          hvd.elastic.CommitStateCallback(state)])


def reset():
    print("reset", flush=True)
    state.model.optimizer.learning_rate = 0.001 * hvd.size()


state = hvd.elastic.KerasState(model, batch=0, epoch=0)
state.register_reset_callbacks([reset])
train(state)
mine = [weight.tolist() for weight in model.get_weights()] + \
    [float(tf.convert_to_tensor(model.optimizer.learning_rate)), int(model.optimizer.iterations)]
for other in hvd.allgather_object(mine):
    assert other == mine, (other, mine)
print("ended at", state.epoch, "with", hvd.size(), flush=True)
hvd.shutdown()
