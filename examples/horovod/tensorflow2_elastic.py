"""A training loop of TensorFlow 2, elastic: workers may die, leave and join, and every sample of an
epoch counts once.

    ringmaster run -np 4 python3 tensorflow2_elastic.py
"""

import argparse

import horovod.tensorflow as hvd
import tensorflow as tf

from pictures import CLASSES, pictures

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=128, help="of all workers together")
parser.add_argument("--epochs", type=int, default=8)
parser.add_argument("--lr", type=float, default=0.005)
args = parser.parse_args()

hvd.init()

# Each worker has a GPU of its own.
gpus = tf.config.list_physical_devices("GPU")
for gpu in gpus:
    tf.config.experimental.set_memory_growth(gpu, True)
if gpus:
    tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")

# All workers have the same data; the sampler says who works on what.
images, labels = pictures(4000, seed=1)
sampler = hvd.elastic.ElasticSampler(len(images), seed=2)
dataset = hvd.elastic.sharded_indices(sampler, args.batch_size).map(
    lambda own: (tf.gather(images, own), tf.gather(labels, own)))

model = tf.keras.Sequential([
    tf.keras.Input((8, 8, 1)),
    tf.keras.layers.Conv2D(16, 3, activation="relu"),
    tf.keras.layers.Flatten(),
    tf.keras.layers.Dense(64, activation="relu"),
    tf.keras.layers.Dense(CLASSES),
])
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = tf.keras.optimizers.Adam(args.lr)
optimizer.build(model.trainable_variables)  # its variables are a part of the state


@tf.function
def training_step(images, labels):
    with tf.GradientTape() as tape:
        loss = loss_of(labels, model(images, training=True))
    # The mean is over the samples of the step, whoever has worked on how many of them.
    tape = hvd.DistributedGradientTape(tape, sampler=sampler)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables),
                                  model.trainable_variables))
    return loss


@hvd.elastic.run
def train(state):
    # Entered again after each change of the world, where it was.
    while state.sampler.epoch < args.epochs:
        epoch = state.sampler.epoch
        for images, labels in dataset:  # (the rest of) an epoch
            loss = training_step(images, labels)
            state.commit()
        if hvd.rank() == 0:
            print("epoch %d: loss %.4f, %d workers" % (epoch, loss, hvd.size()), flush=True)


train(hvd.elastic.TensorFlowKerasState(model, optimizer, sampler=sampler))

images, labels = pictures(500, seed=1000 + hvd.rank())
right = tf.argmax(model(images, training=False), axis=1) == labels
accuracy = hvd.allreduce(tf.reduce_mean(tf.cast(right, tf.float32)), name="accuracy")
if hvd.rank() == 0:
    print("test: accuracy %.3f with %d workers" % (accuracy, hvd.size()), flush=True)
