"""What a TensorFlow state, a sampler and an optimizer that adds gradients up do as an elastic function is
entered again, or after an error.
"""

import pickle
import threading

import tensorflow as tf

import ringmaster.keras as hk
import ringmaster.tensorflow as hvd
from ringmaster.tensorflow import gradients

tf.get_logger().setLevel("ERROR")
hvd.init()


def test_gradients_that_were_added_up_are_void_when_the_function_is_entered_again():
    weight = tf.Variable(100.0)
    optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(1.0), backward_passes_per_step=2)
    weights = []

    @hvd.elastic.run
    def train(state):
        for gradient in ([3.0, 4.0, 1.0], [10.0, 20.0])[state.entries]:
            optimizer.apply_gradients([(tf.constant(gradient), weight)])
            weights.append(float(weight))
        state.entries += 1
        if state.entries == 1:
            raise hvd.elastic.HostsUpdatedInterrupt(skip_sync=True)

    train(hvd.elastic.ObjectState(entries=0))
    assert weights == [100.0, 93.0, 93.0, 93.0, 63.0], weights


def test_gradients_are_added_up_by_their_variables():
    def after(*passes):
        """Values of the variables v and w, both 0 before."""
        v, w = tf.Variable(0.0), tf.Variable(0.0)
        sgd = tf.keras.optimizers.SGD(1.0)
        optimizer = hvd.DistributedOptimizer(sgd, backward_passes_per_step=2)
        for gradients_of in passes:
            by_name = {"v": v, "w": w}
            optimizer.apply_gradients([(None if value is None else tf.constant(value), by_name[name])
                                       for name, value in gradients_of])
        return float(v), float(w)

    assert after([("v", 1.0), ("w", 10.0)], [("w", 20.0), ("v", 2.0)]) == (-3.0, -30.0)
    assert after([("v", 1.0), ("w", 10.0)], [("v", 1.0), ("w", None)]) == (-2.0, -10.0)
    assert after([("v", 1.0), ("w", None)], [("v", 1.0), ("w", 10.0)]) == (-2.0, -10.0)
    assert after([("v", 1.0), ("w", None)], [("v", 1.0), ("w", None)]) == (-2.0, 0.0)
    try:
        after([("v", 1.0)], [("w", 10.0)])
    except (ValueError, KeyError) as error:  # the latter: Keras 3's own
        assert "which the first of the passes had not" in str(error) or "Variable" in str(error), error
    else:
        raise AssertionError("not refused")


def test_a_sampler_in_a_state_stays_the_same_object_and_is_committed():
    def make():
        model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
        model.compile(tf.keras.optimizers.SGD(1.0), "mse")
        return hvd.elastic.TensorFlowKerasState(model, sampler=hvd.elastic.ElasticSampler(20),
                                                batch=0)

    donor, joiner = make(), make()
    sampler = joiner.sampler
    stream = list(donor.sampler)
    donor.sampler.record_batch(0, 4)
    donor.commit()
    assert donor.sampler.processed_indices == set(stream[:4])
    donor.sampler.record_batch(1, 4)
    donor.sampler.merge([donor.sampler.recorded()])
    donor.restore()
    assert donor.sampler.processed_indices == set(stream[:4])
    joiner.install(pickle.loads(pickle.dumps(donor.capture())))
    assert joiner.sampler is sampler and sampler.processed_indices == set(stream[:4])


def test_what_a_callback_commits_is_run_without_xla():
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
    model.compile(hk.DistributedOptimizer(tf.keras.optimizers.SGD(0.1)), "mse", jit_compile=True)
    commits = hk.elastic.CommitStateCallback(hk.elastic.KerasState(model))
    model.fit(tf.ones((8, 3)), tf.ones((8, 1)), verbose=0, callbacks=[commits])
    assert not model.jit_compile


def test_an_error_in_a_step_gives_its_samples_back():
    sampler = hvd.elastic.ElasticSampler(10, seed=1)
    weight, seen, failures = tf.Variable(1.0), [], []

    def fails(*_):
        failures.append(1)
        raise hvd.HorovodInternalError("the shapes differ")

    def steps():
        for own in hvd.elastic.sharded_indices(sampler, 4):
            with tf.GradientTape() as tape:
                loss = weight * tf.reduce_mean(tf.cast(own, tf.float32))
            hvd.DistributedGradientTape(tape, sampler=sampler).gradient(loss, [weight])
            seen.extend(sampler.last_settled.counted)
            if len(seen) == 4 and not failures:
                gradients.allreduce = fails

    works = gradients.allreduce
    try:
        steps()
        raise AssertionError("nothing was raised")
    except hvd.HorovodInternalError as error:
        assert "the shapes differ" in str(error) and len(seen) == 4
    gradients.allreduce = works
    steps()
    assert sorted(seen) == list(range(10)) and sampler.epoch == 1


def test_nothing_reads_ahead():
    try:
        for _ in hvd.elastic.sharded_indices(hvd.elastic.ElasticSampler(20), 4):
            pass  # the next one without a step, as prefetch() would ask for it
        raise AssertionError("nothing was raised")
    except tf.errors.UnknownError as error:
        assert "RuntimeError: a batch was asked for before the step of the last one" in str(error)


def test_batches_are_read_while_the_script_trains_on_another_and_dropped_when_samples_come_back():
    sampler = hvd.elastic.ElasticSampler(20, shuffle=False)
    read, changed = [], threading.Condition()

    def note(own):
        with changed:
            read.append(own.tolist())
            changed.notify_all()
        return own

    def reads(own):
        return tf.numpy_function(note, [own], tf.int64)

    def wait_for(*batches):
        with changed:
            assert changed.wait_for(lambda: all(b in read for b in batches), timeout=60), read

    def step(counted=True):
        sampler.settle([1.0 if counted else 0.0] * len(sampler.contribution()))

    zeroth, first, second, third, fourth = ([*range(at, at + 4)] for at in range(0, 20, 4))
    batches = iter(hvd.elastic.sharded_batches(sampler, 4, reads))
    assert next(batches).numpy().tolist() == zeroth
    wait_for(zeroth, first, second)  # while the script has the first one
    assert third not in read
    step(counted=False)  # its samples come back: what was read ahead is another batch now
    read.clear()
    assert next(batches).numpy().tolist() == zeroth
    wait_for(zeroth, first, second)
    for expected in (first, second, third, fourth):
        step()
        assert next(batches).numpy().tolist() == expected
    step()
    assert next(batches, None) is None and sampler.epoch == 1


def test_wrong_arguments_of_what_reads_ahead_are_named():
    sampler = hvd.elastic.ElasticSampler(20)

    def gives(value):
        return lambda own: value

    for arguments, words in (((sampler, 0, tf.identity), "global_batch: is 0"),
                             ((sampler, 1.5, tf.identity), "global_batch: is 1.5, must be a whole"),
                             ((sampler, "x", tf.identity), "global_batch: is 'x', must be"),
                             ((sampler, None, tf.identity), "global_batch: is None, must be"),
                             ((sampler, 4, gives(None)), "read: returns None, must return"),
                             ((sampler, 4, gives(())), "read: returns (), must return"),
                             ((sampler, 4, "x"), "read: is a str"),
                             ((sampler, 4, tf.identity, 0), "ahead: is 0, must be 1 or more"),
                             (([1], 4, tf.identity), "sampler: is a list")):
        try:
            hvd.elastic.sharded_batches(*arguments)
            raise AssertionError("nothing was raised")
        except ValueError as error:
            assert words in str(error), error
    without_weights = hvd.elastic.sharded_batches(sampler, 4, lambda own: (own, None))
    assert next(iter(without_weights))[1] is None  # as in other data sets
    for wrong in (1.5, "x", None):
        try:
            hvd.elastic.sharded_indices(sampler, wrong)
            raise AssertionError("nothing was raised")
        except ValueError as error:
            assert "global_batch: is %r, must be" % (wrong,) in str(error), error


def test_a_state_of_what_is_no_model_is_refused():
    try:
        hvd.elastic.TensorFlowKerasState(5)
        raise AssertionError("nothing was raised")
    except ValueError as error:
        assert "model: is a int, must be a Keras model" in str(error), error


def test_a_sampler_is_for_all_ranks():
    some = hvd.add_process_set([0])
    try:
        hvd.DistributedOptimizer(tf.keras.optimizers.SGD(1.0), process_set=some,
                                 sampler=hvd.elastic.ElasticSampler(20))
        raise AssertionError("nothing was raised")
    except ValueError as error:
        assert "process_set must be global_process_set" in str(error)
    hvd.remove_process_set(some)


for name, function in list(globals().items()):
    if name.startswith("test_"):
        function()
hvd.shutdown()
