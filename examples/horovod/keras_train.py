"""model.fit() as a script for Horovod has it: nothing in it is Ringmaster's own.

    ringmaster run -np 4 python3 keras_train.py
"""

import argparse

import horovod.keras as hvd
import tensorflow as tf

from pictures import CLASSES, pictures

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--steps", type=int, default=120, help="an epoch's, of all workers together")
parser.add_argument("--lr", type=float, default=0.002)
parser.add_argument("--warmup-epochs", type=int, default=1)
parser.add_argument("--checkpoint", help="a file of Keras's, *.keras; none: nothing is saved")
parser.add_argument("--mixed-precision", action="store_true")
args = parser.parse_args()

hvd.init()

# Each worker has a GPU of its own.
gpus = tf.config.list_physical_devices("GPU")
for gpu in gpus:
    tf.config.experimental.set_memory_growth(gpu, True)
if gpus:
    tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")

if args.mixed_precision:
    tf.keras.mixed_precision.set_global_policy("mixed_float16")

dataset = tf.data.Dataset.from_tensor_slices(pictures(4000, seed=hvd.rank())).repeat().shuffle(
    4000).batch(args.batch_size)
testing = tf.data.Dataset.from_tensor_slices(pictures(500, seed=1000 + hvd.rank())).batch(100)

model = tf.keras.Sequential([
    tf.keras.Input((8, 8, 1)),
    tf.keras.layers.Conv2D(16, 3, activation="relu"),
    tf.keras.layers.Flatten(),
    tf.keras.layers.Dense(64, activation="relu"),
    tf.keras.layers.Dense(CLASSES, dtype="float32"),
])
# As many workers see as many times the samples in a step.
rate = args.lr * hvd.size()
model.compile(optimizer=hvd.DistributedOptimizer(tf.keras.optimizers.Adam(rate)),
              loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
              metrics=["accuracy"])

callbacks = [
    hvd.callbacks.BroadcastGlobalVariablesCallback(0),
    hvd.callbacks.MetricAverageCallback(),
    hvd.callbacks.LearningRateWarmupCallback(rate, warmup_epochs=args.warmup_epochs),
    hvd.callbacks.LearningRateScheduleCallback(rate, 0.5, start_epoch=args.warmup_epochs),
]
if args.checkpoint and hvd.rank() == 0:  # one worker alone writes
    callbacks.append(tf.keras.callbacks.ModelCheckpoint(args.checkpoint))

model.fit(dataset, steps_per_epoch=args.steps // hvd.size(), epochs=args.epochs,
          callbacks=callbacks, verbose=2 if hvd.rank() == 0 else 0)

accuracy = hvd.allreduce(model.evaluate(testing, verbose=0)[1], name="accuracy")
if hvd.rank() == 0:
    print("test: accuracy %.3f with %d workers" % (accuracy, hvd.size()), flush=True)
