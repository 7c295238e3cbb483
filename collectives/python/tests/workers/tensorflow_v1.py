"""A script for TensorFlow 1, by tf.compat.v1: graphs, sessions, hooks. Its graphs run on one
thread, and nothing in them says in which order.
"""

import numpy as np
import tensorflow.compat.v1 as tf

import ringmaster.tensorflow as hvd

tf.disable_eager_execution()
tf.logging.set_verbosity(tf.logging.ERROR)
hvd.init()
rank, size = hvd.rank(), hvd.size()
config = tf.ConfigProto(inter_op_parallelism_threads=1, intra_op_parallelism_threads=1)
config.gpu_options.visible_device_list = str(hvd.local_rank())


def test_many_collectives_of_which_nothing_says_the_order():
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        given = tf.placeholder(tf.float32, [3])
        totals = [hvd.allreduce(given * i, op=hvd.Sum) for i in range(30)]
        rows = [hvd.allgather(tf.fill([rank + 1], i)) for i in range(5)]
        places = [hvd.rank_op(), hvd.size_op()]
        for run in range(3):
            order = list(range(30))
            np.random.RandomState(rank + run).shuffle(order)
            found = session.run([totals[i] for i in order] + rows[::1 - 2 * rank] + places,
                                {given: [1.0, 2.0, rank]})
            for i, total in zip(order, found):
                assert total.tolist() == [i * size, 2 * i * size, i * sum(range(size))]
            assert found[-2:] == [rank, size]
            assert all(len(gathered) == sum(range(size + 1)) for gathered in found[30:35])
        # Only what is asked for runs.
        assert session.run(totals[1], {given: [1.0, 1.0, 1.0]}).tolist() == [size] * 3


def test_gradients():
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        given = tf.ones([2])
        gradient, = tf.gradients(hvd.allreduce(given, op=hvd.Sum) * float(rank + 1), given)
        assert session.run(gradient).tolist() == [sum(range(size + 1))] * 2


def steps_of_a_monitored_session(optimizer, **options):
    """How many steps were done, and the weight before the last."""
    with tf.Graph().as_default():
        weight = tf.get_variable("weight", initializer=np.full(3, rank, np.float32))
        step = tf.train.get_or_create_global_step()
        train = hvd.DistributedOptimizer(optimizer, **options).minimize(
            tf.reduce_sum(weight * float(rank)), global_step=step)
        hooks = [hvd.BroadcastGlobalVariablesHook(size - 1), tf.train.StopAtStepHook(4)]
        steps = 0
        with tf.train.MonitoredTrainingSession(hooks=hooks, config=config) as session:
            while not session.should_stop():
                before = session.run(weight)
                session.run(train)
                steps += 1
        return steps, before.tolist()


def test_monitored_sessions():
    for optimizer, options in ((tf.train.GradientDescentOptimizer(0.1), {}),
                               (tf.train.AdamOptimizer(0.1), {}),
                               (tf.train.MomentumOptimizer(0.1, 0.9),
                                {"backward_passes_per_step": 2})):
        mine = steps_of_a_monitored_session(optimizer, **options)
        assert mine[0] == 4 and mine[1] != [size - 1] * 3
        everyone = hvd.allgather_object(mine)
        assert everyone == [mine] * size, everyone


def test_weights_are_those_of_one_process():
    for passes in (1, 2):
        with tf.Graph().as_default(), tf.Session(config=config) as session:
            weight = tf.get_variable("weight", initializer=np.full(3, rank, np.float32))
            table = tf.get_variable("table", initializer=np.full((size, 1), 5.0, np.float32))
            data = tf.placeholder(tf.float32, [3])
            optimizer = hvd.DistributedOptimizer(
                tf.train.GradientDescentOptimizer(0.5), backward_passes_per_step=passes,
                average_aggregated_gradients=True)
            loss = tf.reduce_sum(weight * data) + tf.reduce_sum(tf.gather(table, [rank]))
            train = optimizer.minimize(loss)
            session.run(tf.global_variables_initializer())
            session.run(hvd.broadcast_global_variables(0))
            for number in range(2 * passes):
                session.run(train, {data: [1.0, rank, number]})
            mean = (size - 1) / 2
            numbers = sum(range(2 * passes)) / passes
            np.testing.assert_allclose(session.run(weight), [-1, -mean, -0.5 * numbers], rtol=1e-5)
            np.testing.assert_allclose(session.run(table), [[5 - 1 / size]] * size, rtol=1e-5)


def adds_up_and_is_entered_again(session):
    """The weight after a step of two passes, the first of which came before as well."""
    weight = tf.get_variable("weight", initializer=0.0)
    data = tf.placeholder(tf.float32, [])
    train = hvd.DistributedOptimizer(tf.train.GradientDescentOptimizer(1.0),
                                     backward_passes_per_step=2).minimize(weight * data)
    session.run(tf.global_variables_initializer())

    @hvd.elastic.run
    def enter(state):
        state.entries += 1
        session.run(train, {data: 10.0})
        if state.entries == 1:
            raise hvd.elastic.HostsUpdatedInterrupt(skip_sync=True)
        session.run(train, {data: 1.0})

    enter(hvd.elastic.ObjectState(entries=0))
    return session.run(weight)


def test_what_was_added_up_is_void_where_a_function_is_entered_again():
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        assert adds_up_and_is_entered_again(session) == -11
    # A session that is nobody's default is known to the script alone.
    with tf.Graph().as_default():
        adds_up_and_is_entered_again(tf.Session(config=config))


def test_an_error_is_the_same_on_all_and_the_job_goes_on():
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        differs = hvd.allreduce(tf.ones([2 + rank]), name="differs")
        try:
            session.run(differs)
            raise AssertionError("no error")
        except tf.errors.OpError as error:
            assert "element count" in str(error) or "shape" in str(error), error
        assert session.run(hvd.allreduce(tf.ones([2]), op=hvd.Sum)).tolist() == [size] * 2


def test_state():
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        weight = tf.get_variable("weight", initializer=np.full(3, float(rank)))
        session.run(tf.global_variables_initializer())
        state = hvd.elastic.TensorFlowState(session=session, batch=rank)
        state.sync()
        assert session.run(weight).tolist() == [0.0] * 3 and state.batch == 0
        weight.load([7.0] * 3, session)
        state.batch = 3
        state.restore()
        assert session.run(weight).tolist() == [0.0] * 3 and state.batch == 0


for name, test in [item for item in sorted(globals().items()) if item[0].startswith("test_")]:
    print(name, flush=True)
    test()
hvd.shutdown()
