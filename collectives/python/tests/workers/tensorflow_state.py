"""What a TensorFlow state and an optimizer that adds gradients up do as an elastic function is
entered again.
"""

import pickle

import tensorflow as tf

import ringmaster.tensorflow as hvd

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


for name, function in list(globals().items()):
    if name.startswith("test_"):
        function()
hvd.shutdown()
