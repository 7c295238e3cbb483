"""Gradients through every collective, as Horovod has them."""

import torch

import ringmaster.torch as rm

rm.init()
rank, size = rm.rank(), rm.size()
torch.set_default_dtype(torch.float64)


def weights(shape, of=rank):
    """What rank `of` multiplies its result with."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(of))


def all_weights(shape):
    return [weights(shape, of) for of in range(size)]


def leaf(shape):
    return torch.full(shape, rank + 1.0, requires_grad=True)


def gradient_of(tensor, result):
    (result * weights(result.shape)).sum().backward()
    return tensor.grad


def test_allreduce():
    for op, expected in ((rm.Sum, sum(all_weights((3, 2)))), (rm.Average, sum(all_weights(
        (3, 2))) / size)):
        mine = leaf((3, 2))
        assert torch.allclose(gradient_of(mine, rm.allreduce(mine, op=op)), expected)
        mine = leaf((3, 2))
        scaled = rm.allreduce(mine, op=op, prescale_factor=2.0, postscale_factor=3.0, name="scaled")
        assert torch.allclose(gradient_of(mine, scaled), 6 * expected)
    mine = leaf((3, 2))
    compressed = rm.allreduce(mine, op=rm.Sum, compression=rm.Compression.fp16)
    assert torch.allclose(gradient_of(mine, compressed), sum(all_weights((3, 2))), atol=0.02)
    with torch.no_grad():
        assert not rm.allreduce(mine).requires_grad
    assert rm.allreduce(mine[0].t()).requires_grad


def test_an_operation_without_a_gradient_says_so():
    mine = leaf((2,))
    result = rm.allreduce(mine, op=rm.Max)
    assert result.tolist() == [size, size]
    try:
        result.sum().backward()
        raise AssertionError("a gradient through Max")
    except ValueError as error:
        assert "Max has no gradient" in str(error)


def test_groups():
    tensors = [leaf((2,)), leaf((3, 2)), torch.tensor([rank])]  # integers have no gradient
    results = rm.grouped_allreduce(tensors, op=rm.Sum, name="group")
    (results[0].sum() + (results[1] * weights((3, 2))).sum()).backward()
    assert tensors[0].grad.tolist() == [size, size]
    assert torch.allclose(tensors[1].grad, sum(all_weights((3, 2))))
    mine = [leaf((rank + 1, 2)), leaf((2,))]
    gathered = rm.grouped_allgather(mine)
    (gathered[0].sum() + 3 * gathered[1].sum()).backward()
    assert torch.equal(mine[0].grad, torch.ones(rank + 1, 2)) and mine[1].grad.tolist() == [3, 3]
    mine = [leaf((size, 2)), leaf((2 * size + 1,))]
    scattered = rm.grouped_reducescatter(mine)
    (scattered[0].sum() + scattered[1].sum()).backward()
    assert torch.equal(mine[0].grad, torch.ones(size, 2)) and torch.equal(
        mine[1].grad, torch.ones(2 * size + 1))


def test_allgather_averages_as_horovod_does():
    mine = leaf((rank + 1, 2))
    gathered = rm.allgather(mine)
    expected = sum(all_weights(gathered.shape)) / size
    first = sum(r + 1 for r in range(rank))
    assert torch.allclose(gradient_of(mine, gathered), expected[first:first + rank + 1])


def test_broadcast_reaches_the_root_alone():
    for root in (0, size - 1):
        mine = leaf((2, 2))
        expected = sum(all_weights((2, 2))) / size if rank == root else torch.zeros(2, 2)
        assert torch.allclose(gradient_of(mine, rm.broadcast(mine, root)), expected)


def test_reducescatter_has_one_gradient_for_sum_and_average():
    rows = 2 * size + 1
    shares = [rows // size + (r < rows % size) for r in range(size)]
    expected = torch.cat([weights((shares[r], 2), r) for r in range(size)])
    for op, factor in ((rm.Average, 1), (rm.Sum, size)):
        mine = leaf((rows, 2))
        assert torch.allclose(gradient_of(mine, rm.reducescatter(mine, op=op)), factor * expected)


def test_alltoall_sends_gradients_back():
    splits = [r + 1 for r in range(size)]
    mine = leaf((sum(splits), 2))
    rows, received = rm.alltoall(mine, splits)
    assert not received.requires_grad
    gradient = gradient_of(mine, rows)
    parts = [
        weights(((r + 1) * size, 2), r)[rank * (r + 1):(rank + 1) * (r + 1)] for r in range(size)
    ]
    assert torch.equal(gradient, torch.cat(parts))
    mine = leaf((size,))
    assert torch.equal(gradient_of(mine, rm.alltoall(mine)),
                       torch.stack([weights((size, ), r)[rank] for r in range(size)]))


def test_within_a_set():
    mine = rm.add_process_set([0, 1])
    if mine.included():
        tensor = leaf((1,))
        (rm.allreduce(tensor, op=rm.Sum, process_set=mine) * (rank + 1)).sum().backward()
        assert tensor.grad.item() == 3
        tensor = leaf((1,))
        (rm.allgather(tensor, process_set=mine) * torch.tensor([1.0, 2.0])).sum().backward()
        assert tensor.grad.item() == rank + 1
    rm.remove_process_set(mine)


def test_gradients_of_gradients():
    mine = leaf((1,))
    cubed = rm.allreduce(mine, op=rm.Sum).pow(3).sum()
    first, = torch.autograd.grad(cubed, mine, create_graph=True)
    total = sum(r + 1 for r in range(size))
    assert first.item() == size * 3 * total**2
    first.sum().backward()
    assert mine.grad.item() == size * size * 6 * total


def test_batch_norm_over_all_ranks_equals_that_over_one_batch():
    shapes = [(3 + r, 4, 2) for r in range(size)]
    shapes[-1] = (0, 4, 2)  # this rank has no samples
    batches = [torch.randn(shape, generator=torch.Generator().manual_seed(50 + r)) * 3 + 100
               for r, shape in enumerate(shapes)]
    for momentum in (0.1, None):
        ours, theirs = rm.SyncBatchNorm(4,
                                        momentum=momentum), torch.nn.BatchNorm1d(4,
                                                                                 momentum=momentum)
        for module in (ours, theirs):
            module.weight.data.uniform_(generator=torch.Generator().manual_seed(9))
        for _ in range(2):
            mine, whole = batches[rank].clone().requires_grad_(), torch.cat(
                batches).requires_grad_()
            result, expected = ours(mine), theirs(whole)
            first = sum(shape[0] for shape in shapes[:rank])
            part = slice(first, first + shapes[rank][0])
            assert torch.allclose(result, expected[part])
            expected.pow(3).sum().backward()
            result.pow(3).sum().backward()
            assert torch.allclose(mine.grad, whole.grad[part], atol=1e-9)
        for name, value in theirs.named_buffers():
            assert torch.allclose(getattr(ours, name), value), name
        weight = rm.allreduce(ours.weight.grad, op=rm.Sum)
        assert torch.allclose(weight, theirs.weight.grad)
        ours.eval(), theirs.eval()
        assert torch.allclose(ours(batches[0]), theirs(batches[0]))
    half = rm.SyncBatchNorm(4, affine=False, track_running_stats=False)(batches[0].half())
    assert half.dtype == torch.float16
    for wrong, says in ((torch.ones(4), "must have 2 or more"), (torch.ones(0, 4), "0 value")):
        try:
            rm.SyncBatchNorm(4)(wrong)
            raise AssertionError("went through")
        except ValueError as error:
            assert says in str(error)


for test in [value for name, value in sorted(globals().items()) if name.startswith("test_")]:
    test()
rm.shutdown()
