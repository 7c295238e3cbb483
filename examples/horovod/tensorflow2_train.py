"""A training loop of TensorFlow 2 as a script for Horovod has it: nothing in it is Ringmaster's own.

    ringmaster run -np 4 python3 tensorflow2_train.py
"""

import argparse
import os

import horovod.tensorflow as hvd
import tensorflow as tf

from pictures import CLASSES, pictures

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--steps", type=int, default=400, help="of all workers together")
parser.add_argument("--lr", type=float, default=0.002)
parser.add_argument("--checkpoints", help="a folder; none: nothing is saved")
parser.add_argument("--fp16-allreduce", action="store_true")
args = parser.parse_args()

hvd.init()

# Each worker has a GPU of its own.
gpus = tf.config.list_physical_devices("GPU")
for gpu in gpus:
    tf.config.experimental.set_memory_growth(gpu, True)
if gpus:
    tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")

images, labels = pictures(4000, seed=hvd.rank())
dataset = tf.data.Dataset.from_tensor_slices((images, labels)).repeat().shuffle(4000).batch(
    args.batch_size)

model = tf.keras.Sequential([
    tf.keras.Input((8, 8, 1)),
    tf.keras.layers.Conv2D(16, 3, activation="relu"),
    hvd.SyncBatchNormalization(),
    tf.keras.layers.Flatten(),
    tf.keras.layers.Dense(64, activation="relu"),
    tf.keras.layers.Dense(CLASSES),
])
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
# As many workers see as many times the samples in a step.
optimizer = tf.keras.optimizers.Adam(args.lr * hvd.size())
compression = hvd.Compression.fp16 if args.fp16_allreduce else hvd.Compression.none


@tf.function
def training_step(images, labels):
    with tf.GradientTape() as tape:
        loss = loss_of(labels, model(images, training=True))
    tape = hvd.DistributedGradientTape(tape, compression=compression)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


def optimizer_variables():
    return optimizer.variables() if callable(optimizer.variables) else optimizer.variables


for batch, (images, labels) in enumerate(dataset.take(args.steps // hvd.size())):
    loss = training_step(images, labels)
    if batch == 0:
        # After the first step, because it makes the optimizer's variables.
        hvd.broadcast_variables(model.variables, root_rank=0)
        hvd.broadcast_variables(optimizer_variables(), root_rank=0)
    if batch % 20 == 0 and hvd.rank() == 0:
        print("step %d: loss %.4f" % (batch, loss), flush=True)

if args.checkpoints and hvd.rank() == 0:  # one worker alone writes
    tf.train.Checkpoint(model=model).save(os.path.join(args.checkpoints, "checkpoint"))

images, labels = pictures(500, seed=1000 + hvd.rank())
right = tf.argmax(model(images, training=False), axis=1) == labels
accuracy = hvd.allreduce(tf.reduce_mean(tf.cast(right, tf.float32)), name="accuracy")
if hvd.rank() == 0:
    print("test: accuracy %.3f with %d workers" % (accuracy, hvd.size()), flush=True)
