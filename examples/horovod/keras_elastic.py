"""model.fit() as a script for Horovod has it, elastic: workers may die, leave and join.

    ringmaster run -np 4 python3 keras_elastic.py
"""

import argparse

import horovod.keras as hvd
import tensorflow as tf

from pictures import CLASSES, pictures

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=64, help="of all workers together")
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--lr", type=float, default=0.004)
parser.add_argument("--warmup-epochs", type=int, default=1)
args = parser.parse_args()

hvd.init()

# Each worker has a GPU of its own.
gpus = tf.config.list_physical_devices("GPU")
for gpu in gpus:
    tf.config.experimental.set_memory_growth(gpu, True)
if gpus:
    tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")

# All workers have the same data; the sampler says who works on what, so that every sample of an
# epoch counts once. Batches are read while the model trains on another.
images, labels = pictures(4000, seed=1)
sampler = hvd.elastic.ElasticSampler(len(images), seed=2)
dataset = hvd.elastic.sharded_batches(
    sampler, args.batch_size, lambda own: (tf.gather(images, own), tf.gather(labels, own)))

model = tf.keras.Sequential([
    tf.keras.Input((8, 8, 1)),
    tf.keras.layers.Conv2D(16, 3, activation="relu"),
    tf.keras.layers.Flatten(),
    tf.keras.layers.Dense(64, activation="relu"),
    tf.keras.layers.Dense(CLASSES),
])
optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.Adam(args.lr), sampler=sampler)
model.compile(optimizer=optimizer, metrics=["accuracy"],
              loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))


@hvd.elastic.run
def train(state):
    # Entered again after each change of the world, where it was. The global batch stays the same,
    # and so does the learning rate. An epoch a fit(): the first may be the rest of one.
    while state.sampler.epoch < args.epochs:
        epoch = state.sampler.epoch
        if hvd.rank() == 0:
            print("epoch %d with %d workers" % (epoch, hvd.size()), flush=True)
        callbacks = [hvd.callbacks.MetricAverageCallback(),
                     hvd.elastic.CommitStateCallback(state)]
        if epoch < args.warmup_epochs:
            callbacks.insert(1, hvd.callbacks.LearningRateWarmupCallback(
                args.lr, warmup_epochs=args.warmup_epochs, verbose=1,
                steps_per_epoch=-(-len(images) // args.batch_size)))
        else:  # also after an epoch of the warm-up that was entered again and had fewer batches
            state.model.optimizer.learning_rate = args.lr
        state.model.fit(dataset, initial_epoch=epoch, epochs=epoch + 1, callbacks=callbacks,
                        verbose=2 if hvd.rank() == 0 else 0)


train(hvd.elastic.KerasState(model, sampler=sampler))

images, labels = pictures(500, seed=1000 + hvd.rank())
accuracy = hvd.allreduce(model.evaluate(images, labels, verbose=0)[1], name="accuracy")
if hvd.rank() == 0:
    print("test: accuracy %.3f with %d workers" % (accuracy, hvd.size()), flush=True)
