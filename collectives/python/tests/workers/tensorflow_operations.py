"""Every collective of ringmaster.tensorflow, eager and in a tf.function, with its gradient, on all
ranks. Its graphs run on one thread: nothing may wait for what this thread would have to do.
"""

import numpy as np
import tensorflow as tf

import ringmaster.keras as hvd_keras
import ringmaster.tensorflow as hvd
from expected_errors import expect

tf.get_logger().setLevel("ERROR")
tf.config.threading.set_inter_op_parallelism_threads(1)
hvd.init()
rank, size = hvd.rank(), hvd.size()
ranks = np.arange(size)


def both(function):
    """The results in eager mode and in a graph, as numpy's."""
    for one in (function, tf.function(function)):
        yield tf.nest.map_structure(lambda t: np.asarray(t), one())


def test_allreduce():
    for dtype in (tf.float32, tf.float64, tf.float16, tf.bfloat16, tf.int32, tf.int64, tf.uint8):
        mine = tf.cast(tf.fill((3, 2), rank + 1), dtype)
        for total in both(lambda: hvd.allreduce(mine, op=hvd.Sum)):
            assert total.shape == (3, 2) and (total.astype(float) == (ranks + 1).sum()).all()
    mine = tf.fill((2,), float(rank + 1))
    for kinds in both(lambda: [hvd.allreduce(mine), hvd.allreduce(mine, average=False),
                               hvd.allreduce(mine, op=hvd.Max), hvd.allreduce(mine, op=hvd.Min),
                               hvd.allreduce(mine, op=hvd.Product),
                               hvd.allreduce(mine, op=hvd.Sum, prescale_factor=2.0,
                                             postscale_factor=0.25),
                               hvd.allreduce(mine, compression=hvd.Compression.fp16),
                               hvd.allreduce(tf.constant(2.0), op=hvd.Sum, name="scalar")]):
        expected = [(size + 1) / 2, (ranks + 1).sum(), size, 1, np.prod(ranks + 1.0),
                    (ranks + 1).sum() / 2, (size + 1) / 2]
        assert [kind[0] for kind in kinds[:-1]] == expected and kinds[-1] == 2 * size, kinds
    assert kinds[-2].dtype == np.float32
    same = tf.constant([3.0, 4.0])
    for result in both(lambda: hvd.allreduce(same, op=hvd.Adasum)):
        np.testing.assert_allclose(result, [3, 4], rtol=1e-6)


def test_groups():
    mine = [tf.fill((3,), rank + 1.0), tf.fill((2, 2), rank), tf.ones((300000,))]
    for sums in both(lambda: hvd.grouped_allreduce(mine, op=hvd.Sum)):
        assert [s.flat[0] for s in sums] == [(ranks + 1).sum(), ranks.sum(), size]
    assert hvd.grouped_allreduce([]) == [] and hvd.grouped_allgather([]) == []
    for rows, more in both(lambda: hvd.grouped_allgather([tf.fill((rank,), rank),
                                                          tf.constant([[rank, 1]])])):
        assert rows.tolist() == [r for r in range(size) for _ in range(r)]
        assert more.tolist() == [[r, 1] for r in range(size)]
    for parts in both(lambda: hvd.grouped_reducescatter([tf.ones(size), tf.ones((size, 3))],
                                                        op=hvd.Sum)):
        assert [part.tolist() for part in parts] == [[size], [[size] * 3]]


def test_indexed_slices():
    mine = tf.IndexedSlices(tf.fill((rank + 1, 2), float(rank + 1)), tf.range(rank + 1),
                            dense_shape=tf.constant([size, 2]))
    for op, divisor in ((hvd.Sum, 1), (hvd.Average, size)):
        for result in both(lambda: tf.convert_to_tensor(hvd.allreduce(mine, op=op))):
            expected = [sum(r + 1 for r in ranks if r >= row) / divisor for row in range(size)]
            assert result[:, 0].tolist() == expected, result
    dense, sparse = hvd.grouped_allreduce([tf.ones(2), mine], op=hvd.Sum)
    assert dense.numpy().tolist() == [size] * 2 and isinstance(sparse, tf.IndexedSlices)
    expect(ValueError, lambda: hvd.allreduce(mine, op=hvd.Max), "Max, must be Sum or Average")


def test_rows():
    for gathered in both(lambda: hvd.allgather(tf.fill((rank + 1, 2), rank))):
        assert gathered.tolist() == [[r, r] for r in range(size) for _ in range(r + 1)]
    rows = 2 * size + 1
    for part in both(lambda: hvd.reducescatter(tf.range(rows, dtype=tf.float32) + rank,
                                               op=hvd.Sum)):
        shares = [rows // size + (r < rows % size) for r in range(size)]
        whole = np.arange(rows) * size + ranks.sum()
        assert part.tolist() == np.split(whole, np.cumsum(shares)[:-1])[rank].tolist()
    splits = tf.range(size) + 1  # to rank r r + 1 rows that say who sent them
    mine = tf.fill((sum(range(size + 1)), 2), float(rank))
    for result, received in both(lambda: hvd.alltoall(mine, splits=splits)):
        assert received.tolist() == [rank + 1] * size
        assert result.tolist() == [[float(r)] * 2 for r in range(size) for _ in range(rank + 1)]
    for result in both(lambda: hvd.alltoall(tf.fill((size,), rank))):
        assert result.tolist() == ranks.tolist()
    expect(ValueError, lambda: hvd.allgather(tf.constant(1.0)), "scalar")


def test_broadcast_and_objects():
    root = size - 1
    for result in both(lambda: hvd.broadcast(tf.constant([rank, 7]), root)):
        assert result.tolist() == [root, 7]
    assert hvd.broadcast_object({"from": rank}, root)["from"] == root
    assert hvd.broadcast_object_fn(root)(rank) == root
    assert hvd.broadcast_object(None if rank == root else rank, root) is None
    assert hvd.allgather_object("r" * rank) == ["r" * r for r in range(size)]
    for inside_a_graph in (False, True):
        variables = [tf.Variable([float(rank)] * 3), tf.Variable(rank, dtype=tf.int64)]

        def broadcast():
            hvd.broadcast_variables(variables, root_rank=root)

        (tf.function(broadcast) if inside_a_graph else broadcast)()
        assert variables[0].numpy().tolist() == [root] * 3 and variables[1].numpy() == root
    hvd.broadcast_([variables[0]], 0)
    expect(ValueError, lambda: hvd.broadcast(tf.ones(1), size), "root_rank: is %d" % size)
    for wrong in (-1, 0.0, "0", None):
        says = "root_rank: is %r, must be a rank" % (wrong,)
        for broadcast in (lambda: hvd.broadcast(tf.ones(1), wrong),
                          lambda: hvd.broadcast_([variables[0]], wrong),
                          lambda: hvd.broadcast_variables(variables, wrong),
                          lambda: hvd.broadcast_object(1, wrong),
                          lambda: hvd.broadcast_object_fn(wrong)(1),
                          lambda: hvd_keras.broadcast([1.0], wrong)):
            expect(ValueError, broadcast, says)
        expect(tf.errors.OpError, tf.function(lambda: hvd.broadcast(tf.ones(1), wrong)), says)
    expect(RuntimeError, lambda: hvd.broadcast_global_variables(0), "broadcast_variables")


def test_what_one_rank_cannot_pickle_is_an_error_on_all():
    says = "rank 0 could not pickle its object, a function"
    given = (lambda: 1) if rank == 0 else "fine"
    for send in (hvd.broadcast_object, hvd.broadcast_object_fn(0), hvd.allgather_object,
                 hvd_keras.broadcast_object, hvd_keras.allgather_object):
        expect(ValueError, lambda: send(given), says)
    assert hvd.allgather_object(rank) == list(range(size))


def test_where_a_worker_stands():
    for places in both(lambda: [hvd.rank_op(), hvd.size_op(), hvd.local_rank_op(),
                                hvd.local_size_op(), hvd.process_set_included_op()]):
        assert [int(place) for place in places] == [rank, size, rank, size, 1]


def gradients_of(function, value):
    """Eager, and in a graph."""

    def gradient():
        given = tf.constant(value)
        with tf.GradientTape() as tape:
            tape.watch(given)
            result = tf.reduce_sum(function(given))
        return tape.gradient(result, given)

    return [np.asarray(one()) for one in (gradient, tf.function(gradient))]


def test_gradients():
    mine = np.ones((3, 2), np.float32)
    weight = float(rank + 1)
    for found in gradients_of(lambda x: hvd.allreduce(x, op=hvd.Sum) * weight, mine):
        assert (found == (ranks + 1).sum()).all()
    for found in gradients_of(lambda x: hvd.allreduce(x) * weight, mine):
        assert (found == (size + 1) / 2).all()
    for found in gradients_of(lambda x: sum(map(tf.reduce_sum, hvd.grouped_allreduce(
            [x, 2 * x, tf.constant([1, 2])], op=hvd.Sum)[:2])) * weight, mine):
        assert (found == 3 * (ranks + 1).sum()).all()
    for found in gradients_of(lambda x: hvd.broadcast(x, 0) * weight, mine):
        assert (found == ((size + 1) / 2 if rank == 0 else 0)).all()
    rows = np.ones((rank + 1, 2), np.float32)
    count = sum(range(size + 1))
    first = sum(range(rank + 1))
    for found in gradients_of(lambda x: hvd.allgather(x) * tf.range(1.0, count + 1)[:, None], rows):
        assert found.tolist() == [[first + 1.0 + row] * 2 for row in range(rank + 1)]
    scattered = np.ones((size, 2), np.float32)
    for found in gradients_of(lambda x: hvd.reducescatter(x, op=hvd.Sum) * weight, scattered):
        assert found[:, 0].tolist() == [size * (r + 1.0) for r in range(size)]
    splits = [1] * size
    for found in gradients_of(lambda x: hvd.alltoall(x, splits)[0] * weight, scattered):
        assert found[:, 0].tolist() == [r + 1.0 for r in range(size)]
    expect(ValueError, lambda: gradients_of(lambda x: hvd.allreduce(x, op=hvd.Max), mine), "Max")


def test_many_in_one_function_on_one_thread():
    if size > 1:
        turned = tf.function(lambda: [hvd.allreduce(tf.fill((100,), float(i + rank)), op=hvd.Sum)
                                      for i in range(40)])
        for _ in range(3):
            assert [t[0].numpy() for t in turned()] == [i * size + ranks.sum() for i in range(40)]

    @tf.function(reduce_retracing=False)
    def traced_again(values):
        return hvd.allreduce(tf.reduce_sum(values), op=hvd.Sum)

    for step in range(3):  # the ranks trace at other moments than the others
        length = 2 + (step if rank else 0)
        assert traced_again(tf.ones(length)).numpy() == 2 + (size - 1) * (2 + step)


def test_process_sets():
    mine = [hvd.add_process_set([r]) for r in range(size)]
    for total in both(lambda: hvd.allreduce(tf.ones(2), op=hvd.Sum, process_set=mine[rank])):
        assert total.tolist() == [1, 1]
    assert hvd.size_op(mine[rank].process_set_id).numpy() == 1
    for other in mine:
        hvd.remove_process_set(other)


def test_wrong_use_is_an_error_on_all_and_the_job_goes_on():
    if size > 1:
        differs = tf.ones(2 + rank)
        expect(hvd.HorovodInternalError, lambda: hvd.allreduce(differs, name="shape"), "shape")
        inside = tf.function(lambda: hvd.allreduce(differs, name="shape"))
        expect(tf.errors.OpError, inside, "shape")
    expect(ValueError, lambda: hvd.allreduce(tf.constant(["text"])), "type object")
    expect(ValueError, lambda: hvd.allreduce(tf.ones(1), op=9), "op: is 9")
    expect(ValueError, lambda: hvd.grouped_allreduce(tf.ones(1), process_set=1), "process_set")
    hvd.barrier()


def test_join():
    for step in range(2 + rank):
        total = hvd.allreduce(tf.ones(1), op=hvd.Sum, name="uneven")
        assert total.numpy()[0] == sum(step < 2 + r for r in ranks)
    assert hvd.join() == size - 1


for name, test in [item for item in sorted(globals().items()) if item[0].startswith("test_")]:
    print(name, flush=True)
    test()
hvd.shutdown()
