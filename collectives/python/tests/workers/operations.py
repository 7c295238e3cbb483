"""Every collective on every rank, with values that tell which ranks took part."""

import torch

import ringmaster.torch as rm

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
    for dtype in (torch.uint8, torch.int8, torch.int32, torch.int64, torch.float16, torch.bfloat16,
                  torch.float32, torch.float64):
        result = rm.allreduce(torch.full((3,), rank + 1, dtype=dtype), op=rm.Sum, name=str(dtype))
        assert result.dtype == dtype and result.tolist() == [(ranks + 1).sum().item()] * 3, dtype
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


def test_allgather_of_different_lengths():
    mine = torch.full((rank, 2), rank, dtype=torch.int32)  # rank 0 gives nothing
    result = rm.allgather(mine)
    expected = [[r, r] for r in range(size) for _ in range(r)]
    assert result.tolist() == expected and result.shape == (len(expected), 2)


def test_broadcast_and_objects():
    root = size - 1
    assert rm.broadcast(torch.tensor([rank]), root).item() == root
    mine = torch.tensor([float(rank)])
    assert rm.broadcast_(mine, 0) is mine and mine.item() == 0
    assert rm.broadcast_object({"from": rank, "long": "x" * 5000}, root)["from"] == root
    assert rm.allgather_object("r" * rank) == ["r" * r for r in range(size)]
    rm.barrier()


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


def expect(kind, call, says):
    try:
        call()
    except kind as error:
        assert says in str(error), (says, str(error))
        return
    raise AssertionError("%s was expected: %s" % (kind.__name__, says))


def test_wrong_use_is_the_same_error_everywhere_and_the_job_goes_on():
    differs = rm.HorovodInternalError
    expect(differs, lambda: rm.allreduce(torch.ones(2 + rank), name="shape"), "shape")
    kind = torch.float32 if rank else torch.float64
    expect(differs, lambda: rm.allreduce(torch.ones(2, dtype=kind), name="kind"), "kind")
    expect(differs, lambda: rm.broadcast(torch.ones(2), rank, name="root"), "root")
    expect(ValueError, lambda: rm.allreduce(torch.ones(4, 4).t()), "contiguous")
    expect(ValueError, lambda: rm.allreduce(torch.ones(2, dtype=torch.complex64)), "complex64")
    expect(ValueError, lambda: rm.allreduce([1.0]), "torch.Tensor")
    expect(ValueError, lambda: rm.allgather(torch.tensor(1.0)), "scalar")
    expect(ValueError, lambda: rm.allreduce(torch.ones(1), average=True, op=rm.Sum), "average, op")
    rm.barrier()
    first = rm.allreduce_async(torch.ones(1), name="twice", op=rm.Sum) if rank else None
    if rank:
        expect(ValueError, lambda: rm.allreduce_async(torch.ones(1), name="twice"), "twice")
    else:
        first = rm.allreduce_async(torch.ones(1), name="twice", op=rm.Sum)
    assert rm.synchronize(first).item() == size
    expect(ValueError, lambda: rm.synchronize(first), "handle")
    assert rm.allreduce(torch.ones(1), op=rm.Sum).item() == size


for test in [value for name, value in sorted(globals().items()) if name.startswith("test_")]:
    test()
rm.shutdown()
rm.shutdown()
