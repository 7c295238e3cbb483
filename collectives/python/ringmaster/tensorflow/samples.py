"""Input that is sharded by rank, elastically, for tf.data and Keras: which samples this rank works
on, and which count as done.

An ElasticSampler hands out shares (sampler.py says how). Here they are elements of a data set, and
the word of whose samples are in a step travels in the same operation as the step's gradients: so
all survivors of a death count the same samples, and the mean is over just those.
"""

from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy
import tensorflow as tf

from ringmaster.reductions import Average, Sum
from ringmaster.sampler import ElasticSampler
from ringmaster.sampler_batches import AheadBatches
from ringmaster.tensorflow import gradients
from ringmaster.tensorflow.calling import call

__all__ = ["sharded_batches", "sharded_indices"]

_INDICES = tf.TensorSpec([None], tf.int64)


def sharded_indices(sampler, global_batch):
    """A tf.data.Dataset of this rank's indices of each global batch, a vector of tf.int64.

    One iteration is (the rest of) an epoch, also after the world has changed; at its end the
    sampler's next epoch begins. What reads the samples is mapped over it:

        data = sharded_indices(sampler, 128).map(lambda i: (tf.gather(x, i), tf.gather(y, i)))

    With Keras one epoch a fit(), because Keras takes the batches of the first for the number of all:

        while state.sampler.epoch < epochs:
            model.fit(data, initial_epoch=state.sampler.epoch, epochs=state.sampler.epoch + 1, ...)

    A rank without a share gets one sample, which weighs nothing. Nothing may read ahead: no
    prefetch(), no num_parallel_calls, no cache() or shuffle() behind it (the sampler shuffles);
    sharded_batches() does. Give the sampler to the optimizer or the tape, and to the state.
    """
    _check(sampler)
    batches = sampler.batches(global_batch)

    def shares():
        sampler.give_back()  # what a step was to have that has ended with an error, on all ranks
        for own in batches:
            yield own or [0]

    return _one_by_one(shares, _INDICES)


def sharded_batches(sampler, global_batch, read, ahead=2):
    """A tf.data.Dataset of this rank's share of each global batch, read ahead of the steps.

    read: what a Dataset's map() would get. It makes a batch of tensors of a vector of indices, as a
    graph, on threads of its own.
    ahead: how many batches are read, each on its own thread, while the script trains on another.

        def read(own):
            pictures = tf.map_fn(decode, tf.gather(paths, own), fn_output_signature=tf.float32)
            return pictures, tf.gather(labels, own)

        data = sharded_batches(sampler, 128, read, ahead=4)

    What was read ahead is dropped, cut anew and read again when the world has changed, or when
    samples of a dead worker have come back. All else is as with sharded_indices(): nothing may read
    ahead behind it, and a rank without a share gets one sample, which weighs nothing.
    """
    _check(sampler)
    if not callable(read):
        raise ValueError("read: is a %s, must be a function of a vector of indices"
                         % type(read).__name__)
    if isinstance(ahead, bool) or not isinstance(ahead, int) or ahead < 1:
        raise ValueError("ahead: is %r, must be 1 or more" % (ahead,))
    batches = sampler.batches(global_batch)
    reader = tf.function(read, input_signature=[_INDICES])
    _check_read(reader.get_concrete_function().structured_outputs)
    made = tf.data.Dataset.from_generator(
        lambda: (), output_signature=_INDICES).map(reader).element_spec

    def shares():
        sampler.give_back()  # as above
        cuts = AheadBatches(batches)
        with ThreadPoolExecutor(ahead, "ringmaster-read") as pool:
            # A batch of a share without samples is one of one sample: it weighs nothing.
            yield from cuts.follow(lambda: _read_ahead(cuts, reader, pool, ahead), lambda one: one)

    options = tf.data.Options()
    # While it waits for a batch it holds none of the threads that read, or that run the model.
    options.threading.private_threadpool_size = 1
    return _one_by_one(shares, made).with_options(options)


def _read_ahead(cuts, reader, pool, ahead):
    """Yields what `reader` makes of the shares, in order. These are cut on the caller's thread: the
    threads that read see neither the sampler nor the library.
    """
    reading = deque()
    try:
        for own in cuts:
            reading.append(pool.submit(reader, tf.constant(own, tf.int64)))
            if len(reading) > ahead:
                yield reading.popleft().result()
        while reading:
            yield reading.popleft().result()
    finally:  # also where the rest is dropped
        for dropped in reading:
            dropped.cancel()


def _one_by_one(generator, signature):
    """A data set of what a generator yields, of which TensorFlow asks for none before its time."""
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    options.experimental_optimization.inject_prefetch = False
    return tf.data.Dataset.from_generator(
        generator, output_signature=signature).with_options(options)


class SampleMean:
    """Reduces gradients to their mean over the samples of a step, and tells the sampler which those
    are.
    """

    def __init__(self, sampler, op, predivide):
        _check(sampler)
        if op != Average or predivide != 1.0:
            raise ValueError("sampler: the mean is over samples, so op must be Average and "
                             "gradient_predivide_factor 1.0")
        self._sampler = sampler

    def reduce(self, values, name, process_set):
        """`values`: one or more."""
        # Of a gradient, so that a graph makes this call after it has asked for the batch.
        weight, flags = call(self._contribution, values[:1], [tf.float32, tf.float32],
                             [[], [None]])
        weighted = [value * tf.cast(weight, value.dtype) for value in values]
        *sums, counts = gradients.allreduce([*weighted, flags], name, Sum, 1.0, 1.0, process_set)
        scale, = call(self._settle, [counts], [tf.float32], [[]])
        return [total * tf.cast(scale, total.dtype) for total in sums]

    def _contribution(self, _):
        """This rank's part of the batch, at most 1, so that float16 holds the sums; and a 1 for
        each of its samples.
        """
        flags = numpy.array(self._sampler.contribution(), numpy.float32)
        if not len(flags):
            raise ValueError("sampler: has handed out no batch for this step: train on what "
                             "sharded_indices(sampler, ...) gives, a step for each batch")
        return [flags.sum() / numpy.float32(len(flags)), flags]

    def _settle(self, given):
        counts, = given
        settled = self._sampler.settle(counts)
        if not self._sampler.remaining:
            # Now and on all ranks, so that nobody enters an epoch again of which nothing is left.
            self._sampler.begin_next_epoch()
        counted = len(settled.counted)  # none: the step is void
        return [numpy.float32(len(counts) / counted if counted else 0)]


def _check_read(returned):
    if all(part is None for part in tf.nest.flatten(returned)):
        raise ValueError("read: returns %r, must return a batch of tensors" % (returned,))


def _check(sampler):
    if not isinstance(sampler, ElasticSampler):
        raise ValueError("sampler: is a %s, must be an ElasticSampler" % type(sampler).__name__)
