"""Every collective on every rank, with values that tell which ranks took part."""

import torch

import ringmaster.torch as rm
from expected_errors import expect

rm.init()
rank, size = rm.rank(), rm.size()
ranks = torch.arange(size)
assert size > 1 and (rm.local_rank(), rm.local_size()) == (rank, size)
assert (rm.cross_rank(), rm.cross_size()) == (0, 1)
assert rm.view()[:2] == (rank, size) and str(rm.view()) == "1.1"


def test_allreduce():
    mine = torch.arange(5.0) + rank
    kept = mine.clone()
    assert torch.equal(rm.allreduce(mine), torch.arange(5.0) + (size - 1) / 2)
    assert torch.equal(mine, kept)
    assert torch.equal(rm.allreduce(mine, op=rm.Sum), torch.arange(5.0) * size + ranks.sum())
    assert torch.equal(rm.allreduce(mine, average=False), torch.arange(5.0) * size + ranks.sum())
    assert torch.equal(rm.allreduce(mine, op=rm.Min), torch.arange(5.0))
    assert torch.equal(rm.allreduce(mine, op=rm.Max), torch.arange(5.0) + size - 1)
    product = rm.allreduce(torch.tensor([rank + 1.0]), op=rm.Product)
    assert product.item() == (ranks + 1.0).prod().item()
    half = rm.allreduce(mine, op=rm.Sum, prescale_factor=0.5, postscale_factor=4.0)
    assert torch.equal(half, 2 * (torch.arange(5.0) * size + ranks.sum()))
    compressed = rm.allreduce(mine, op=rm.Sum, compression=rm.Compression.fp16)
    assert compressed.dtype == torch.float32 and compressed[0] == ranks.sum()


def test_types():
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
                  torch.bfloat16, torch.float32, torch.float64):
        result = rm.allreduce(torch.full((3,), rank + 1, dtype=dtype), op=rm.Sum, name=str(dtype))
        assert result.dtype == dtype and result.tolist() == [(ranks + 1).sum().item()] * 3, dtype
    flags = torch.tensor([rank == 0, True, False])
    assert rm.allreduce(flags, op=rm.Sum).tolist() == [True, True, False]
    assert rm.allreduce(flags, op=rm.Min).tolist() == [False, True, False]
    large = torch.full((5,), 250, dtype=torch.uint8)
    assert rm.allreduce(large).tolist() == [250] * 5  # no overflow on the way
    assert rm.allreduce(torch.tensor([rank + 1])).item() == (ranks + 1).sum().item() // size


def test_in_place_and_asynchronous_in_another_order():
    tensors = [torch.full((4,), float(rank + i)) for i in range(6)]
    order = range(6) if rank % 2 else reversed(range(6))
    handles = {i: rm.allreduce_async_(tensors[i], name="t%d" % i, op=rm.Sum) for i in order}
    for i in range(6):
        assert rm.synchronize(handles[i]) is tensors[i]
        assert tensors[i].tolist() == [float(ranks.sum() + i * size)] * 4
    handle = rm.allreduce_async(torch.ones(2), op=rm.Sum)
    while not rm.poll(handle):
        pass
    assert rm.synchronize(handle).tolist() == [size, size]
    assert [t.item() for t in rm.grouped_allreduce([torch.ones(1), torch.ones(1) * 2], op=rm.Sum)] \
        == [size, 2 * size]


def test_groups():
    tensors = [torch.full((3,), rank + 1.0), torch.full((2, 2), rank, dtype=torch.int64),
               torch.ones(300000)]
    kept = [tensor.clone() for tensor in tensors]
    for _ in range(3):
        sums = rm.grouped_allreduce(tensors, op=rm.Sum)
        assert [s.flatten()[0].item() for s in sums] == [(ranks + 1).sum(), ranks.sum(), size]
        assert all(torch.equal(a, b) for a, b in zip(tensors, kept))
    assert rm.grouped_allreduce([], op=rm.Sum) == []
    halves = rm.grouped_allreduce(tensors[:1], compression=rm.Compression.fp16)
    assert halves[0].tolist() == [(size + 1) / 2] * 3
    handle = rm.grouped_allreduce_async_(tensors, op=rm.Max, name="group")
    while not rm.poll(handle):
        pass
    assert all(a is b for a, b in zip(rm.synchronize(handle), tensors))
    assert tensors[0].tolist() == [size] * 3
    gathered = rm.grouped_allgather([torch.full((rank,), rank), torch.tensor([[rank, 1]])])
    assert gathered[0].tolist() == [r for r in range(size) for _ in range(r)]
    assert gathered[1].tolist() == [[r, 1] for r in range(size)]


def test_a_group_of_which_one_tensor_differs_fails_as_a_whole():
    tensors = [torch.ones(2), torch.ones(2 + rank), torch.ones(4)]
    says = "shape" if size == 1 else "element count is 2 on rank 0"
    expect(rm.HorovodInternalError, lambda: rm.grouped_allreduce_(tensors, name="bad"), says)
    assert tensors[0].tolist() == [1, 1] and tensors[2].tolist() == [1] * 4
    expect(ValueError, lambda: rm.grouped_allreduce([torch.ones(1), [1]]), "torch.Tensor")
    rm.barrier()


def test_reducescatter():
    for rows in (2 * size + 1, 1):
        mine = torch.arange(rows * 2.0).reshape(rows, 2) + rank
        shares = [rows // size + (r < rows % size) for r in range(size)]
        whole = torch.arange(rows * 2.0).reshape(rows, 2) * size + ranks.sum()
        expected = whole.split(shares)[rank]
        assert torch.equal(rm.reducescatter(mine, op=rm.Sum), expected)
        assert torch.equal(rm.reducescatter(mine), expected / size)
        scaled = rm.reducescatter(mine, op=rm.Sum, prescale_factor=0.5, postscale_factor=4.0)
        assert torch.equal(scaled, 2 * expected)
    group = rm.grouped_reducescatter([torch.ones(size), torch.ones((size, 3)).half()], op=rm.Sum)
    assert group[0].tolist() == [size] and group[1].tolist() == [[size] * 3]
    expect(ValueError, lambda: rm.reducescatter(torch.tensor(1.0)), "scalar")
    expect(rm.HorovodInternalError, lambda: rm.reducescatter(torch.ones(size + rank), name="rows"),
           "differs between ranks")


def test_alltoall():
    # To rank r r + 1 rows that say who sent them.
    splits = torch.arange(size) + 1
    mine = torch.full((splits.sum(), 2), float(rank))
    for _ in range(2):
        result, received = rm.alltoall(mine, splits=splits)
        assert received.tolist() == [rank + 1] * size
        assert result.tolist() == [[float(r)] * 2 for r in range(size) for _ in range(rank + 1)]
    assert rm.alltoall(torch.full((size,), rank)).tolist() == ranks.tolist()
    nothing, received = rm.alltoall(torch.ones(0), splits=[0] * size)
    assert nothing.numel() == 0 and received.tolist() == [0] * size
    # What one rank has done wrong all hear.
    bad = [1] * size if rank else [1] * (size - 1) + [2]
    expect(ValueError, lambda: rm.alltoall(torch.ones(size), bad, name="bad"), "on rank 0")
    bad = [1] * size if rank else [size]
    expect(ValueError, lambda: rm.alltoall(torch.ones(size), bad, name="bad"), "1 entries")
    expect(ValueError, lambda: rm.alltoall(torch.ones(size + 1), name="odd"), "shared evenly")
    expect(ValueError, lambda: rm.alltoall(torch.ones(1), [-1] * size), "negative")
    rm.barrier()


def test_allgather_of_different_lengths():
    mine = torch.full((rank, 2), rank, dtype=torch.int32)  # rank 0 gives nothing
    result = rm.allgather(mine)
    expected = [[r, r] for r in range(size) for _ in range(r)]
    assert result.tolist() == expected and result.shape == (len(expected), 2)


def test_the_gradient_of_an_allgather_reaches_the_rank_that_gave_the_rows():
    mine = torch.full((rank + 1, 2), float(rank), requires_grad=True)
    gathered = rm.allgather(mine, name="with gradient")
    (gathered * torch.arange(1.0, len(gathered) + 1)[:, None]).sum().backward()
    first = sum(r + 1 for r in range(rank))
    assert mine.grad.tolist() == [[first + 1.0 + row] * 2 for row in range(rank + 1)]


def test_averages_of_halves_do_not_overflow():
    for dtype in (torch.float16, torch.bfloat16):
        largest = torch.finfo(dtype).max
        result = rm.allreduce(torch.full((70000,), largest, dtype=dtype), name="largest %s" % dtype)
        assert bool((result == largest).all()), result


def test_broadcast_and_objects():
    root = size - 1
    assert rm.broadcast(torch.tensor([rank]), root).item() == root
    mine = torch.tensor([float(rank)])
    assert rm.broadcast_(mine, 0) is mine and mine.item() == 0
    assert rm.broadcast_object({"from": rank, "long": "x" * 5000}, root)["from"] == root
    assert rm.allgather_object("r" * rank) == ["r" * r for r in range(size)]
    rm.barrier()


def test_none_is_an_object():
    assert rm.broadcast_object(None if rank == 0 else "other", 0) is None
    assert rm.allgather_object(None if rank == 0 else rank) == [None, *range(1, size)]

    class Empty(rm.elastic.State):
        def capture(self):
            return None

        def install(self, captured):
            self.installed = captured

    state = Empty()
    state.sync()
    assert state.installed is None


def test_join_with_uneven_data():
    for last in range(size):
        batches = 5 if rank == last else 2 + (rank < last)
        for batch in range(batches):
            sums = rm.allreduce(torch.ones(3), op=rm.Sum, name="uneven %d" % last)
            took_part = sum(batch < (5 if r == last else 2 + (r < last)) for r in range(size))
            assert sums.tolist() == [took_part] * 3
            lowest = rm.allreduce(torch.tensor([7]), op=rm.Min, name="lowest")
            assert lowest.item() == 7
            rows = rm.allgather(torch.tensor([rank]), name="rows")
            assert len(rows) == took_part
            rm.allreduce(torch.ones(1))  # without a name, which is made of how many there were
        assert rm.join() == last
    assert rm.allreduce(torch.ones(1), op=rm.Sum).item() == size


def test_process_sets():
    all_but_last = rm.add_process_set(range(size - 1))
    last = rm.add_process_set(rm.ProcessSet([size - 1]))
    mine, members = (last, [size - 1]) if rank == size - 1 else (all_but_last, range(size - 1))
    assert mine.ranks == list(members) and mine.included() and mine.size() == len(members)
    assert (all_but_last if mine is last else last).rank() == -1
    for _ in range(3):
        sums = rm.allreduce(torch.full((3,), rank + 1.0), op=rm.Sum, process_set=mine)
        assert sums.tolist() == [sum(r + 1 for r in members)] * 3
    one = torch.ones(len(members), 2)
    assert rm.reducescatter(one, op=rm.Sum, process_set=mine).tolist() == [[len(members)] * 2]
    assert rm.alltoall(one * rank, process_set=mine)[:, 0].tolist() == list(members)
    assert rm.broadcast(torch.tensor([rank]), members[-1], process_set=mine).item() == members[-1]
    assert rm.allgather(torch.tensor([rank]), process_set=mine).tolist() == list(members)
    group = rm.grouped_allreduce([torch.ones(1), torch.ones(2)], op=rm.Sum, process_set=mine)
    assert [t[0].item() for t in group] == [len(members)] * 2
    rm.barrier(process_set=mine)
    other = last if mine is all_but_last else all_but_last
    expect(ValueError, lambda: rm.allreduce(torch.ones(1), process_set=other), "not in process set")
    expect(ValueError, lambda: rm.allreduce(torch.ones(1), process_set=rm.ProcessSet([0])), "added")
    expect(ValueError, lambda: rm.add_process_set([size]), "rank %d is not in" % size)
    expect(rm.HorovodInternalError, lambda: rm.add_process_set([rank]), "differs")
    assert rm.remove_process_set(last) and rm.remove_process_set(all_but_last)
    assert not rm.remove_process_set(last)
    assert rm.global_process_set.size() == size
    assert rm.allreduce(torch.ones(1), op=rm.Sum).item() == size


def test_models():
    torch.manual_seed(rank)
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * (rank + 1), momentum=0.9)
    model(torch.randn(4, 3)).sum().backward()
    optimizer.step()
    rm.broadcast_parameters(model.state_dict(), root_rank=0)
    rm.broadcast_optimizer_state(optimizer, root_rank=0)
    state = rm.allgather_object((model.state_dict(), optimizer.state_dict()))
    for other in state:
        assert all(torch.equal(a, b) for a, b in zip(other[0].values(), state[0][0].values()))
        assert str(other[1]) == str(state[0][1])
    assert optimizer.param_groups[0]["lr"] == 0.1


def test_wrong_use_is_the_same_error_everywhere_and_the_job_goes_on():
    differs = rm.HorovodInternalError
    expect(differs, lambda: rm.allreduce(torch.ones(2 + rank), name="shape"), "shape")
    other = torch.ones((2, 3) if rank else (3, 2))
    same = "shape is [3, 2] on rank 0 and [2, 3] on rank"
    expect(differs, lambda: rm.allreduce(other, name="turned"), same)
    expect(differs, lambda: rm.broadcast(other, 0, name="turned"), same)
    expect(differs, lambda: rm.allgather(torch.ones((1, 2, 3) if rank else (1, 3, 2)), "turned"),
           same.replace("shape", "shape of a row"))
    kind = torch.float32 if rank else torch.float64
    expect(differs, lambda: rm.allreduce(torch.ones(2, dtype=kind), name="kind"), "kind")
    expect(differs, lambda: rm.broadcast(torch.ones(2), rank, name="root"), "root")
    expect(ValueError, lambda: rm.allreduce(torch.ones(2, dtype=torch.complex64)), "complex64")
    expect(ValueError, lambda: rm.allreduce([1.0]), "torch.Tensor")
    expect(ValueError, lambda: rm.allgather(torch.tensor(1.0)), "scalar")
    expect(ValueError, lambda: rm.allreduce(torch.ones(1), average=True, op=rm.Sum), "average, op")
    rm.barrier()
    first = rm.allreduce_async(torch.ones(1), name="twice", op=rm.Sum) if rank else None
    if rank:
        expect(ValueError, lambda: rm.allreduce_async(torch.ones(1), name="twice"), "twice")
    rm.barrier()
    if rank == 0:  # so the others' first ones were in flight until now
        first = rm.allreduce_async(torch.ones(1), name="twice", op=rm.Sum)
    assert rm.synchronize(first).item() == size
    expect(ValueError, lambda: rm.synchronize(first), "handle")
    assert rm.allreduce(torch.ones(1), op=rm.Sum).item() == size


for test in [value for name, value in sorted(globals().items()) if name.startswith("test_")]:
    test()
rm.shutdown()
rm.shutdown()
