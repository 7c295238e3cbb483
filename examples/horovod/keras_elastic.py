"""model.fit() as a script for Horovod has it, elastic: workers may die, leave and join.

    ringmaster run -np 4 python3 keras_elastic.py
"""

import argparse

import horovod.keras as hvd
import tensorflow as tf

from pictures import CLASSES, pictures

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--steps-per-epoch", type=int, default=100, help="of all workers together")
parser.add_argument("--lr", type=float, default=0.002)
parser.add_argument("--warmup-epochs", type=int, default=1)
args = parser.parse_args()

hvd.init()

images, labels = pictures(4000, seed=hvd.rank())
dataset = tf.data.Dataset.from_tensor_slices((images, labels)).repeat().shuffle(4000).batch(
    args.batch_size)

model = tf.keras.Sequential([
    tf.keras.Input((8, 8, 1)),
    tf.keras.layers.Conv2D(16, 3, activation="relu"),
    tf.keras.layers.Flatten(),
    tf.keras.layers.Dense(64, activation="relu"),
    tf.keras.layers.Dense(CLASSES),
])
model.compile(optimizer=hvd.DistributedOptimizer(tf.keras.optimizers.Adam(args.lr * hvd.size())),
              loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
              metrics=["accuracy"])


@hvd.elastic.run
def train(state):
    # Entered again after each change of the world, with what was committed last.
    callbacks = [
        hvd.callbacks.MetricAverageCallback(),
        hvd.elastic.UpdateEpochStateCallback(state),
        hvd.elastic.UpdateBatchStateCallback(state),
        hvd.elastic.CommitStateCallback(state),
    ]
    if state.epoch < args.warmup_epochs:
        callbacks.insert(1, hvd.callbacks.LearningRateWarmupCallback(
            args.lr * hvd.size(), warmup_epochs=args.warmup_epochs, verbose=1))
    state.model.fit(dataset, steps_per_epoch=args.steps_per_epoch // hvd.size(),
                    epochs=args.epochs - state.epoch, callbacks=callbacks,
                    verbose=2 if hvd.rank() == 0 else 0)


def on_state_reset():
    # The global batch has another size now, and the learning rate follows it.
    model.optimizer.learning_rate = args.lr * hvd.size()


state = hvd.elastic.KerasState(model, batch=0, epoch=0)
state.register_reset_callbacks([on_state_reset])
train(state)

images, labels = pictures(500, seed=1000 + hvd.rank())
accuracy = hvd.allreduce(model.evaluate(images, labels, verbose=0)[1], name="accuracy")
if hvd.rank() == 0:
    print("test: accuracy %.3f with %d workers" % (accuracy, hvd.size()), flush=True)
