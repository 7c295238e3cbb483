"""Collectives and a DistributedOptimizer on tensors that lie on the fake GPU (fake_cuda.py), and what they are beside the CPU's."""

import collections
import time

import fake_cuda

import torch

import ringmaster
import ringmaster.torch as rm

rm.init()
rank, size = rm.rank(), rm.size()
ranks = torch.arange(size)


def on_gpu(values, dtype=torch.float32):
    return fake_cuda.to_device(torch.as_tensor(values, dtype=dtype))


def is_on_gpu(tensor):
    return tensor.device == fake_cuda.DEVICE and fake_cuda._is_device(tensor)


def test_the_installation_says_so():
    assert ringmaster.nccl_built() == 23203 and ringmaster.cuda_built() is True


def test_allreduce():
    mine = on_gpu(torch.arange(5.0) + rank)
    result = rm.allreduce(mine, op=rm.Sum)
    assert is_on_gpu(result) and result.tolist() == (torch.arange(5.0) * size + ranks.sum()).tolist()
    assert mine.tolist() == (torch.arange(5.0) + rank).tolist()
    assert rm.allreduce_(mine, op=rm.Max) is mine
    assert mine.tolist() == (torch.arange(5.0) + size - 1).tolist()
    half = rm.allreduce(on_gpu([1.0]), compression=rm.Compression.fp16)
    assert half.tolist() == [1.0] and half.dtype == torch.float32
    for dtype in (torch.bfloat16, torch.float64, torch.int32, torch.int16, torch.bool):
        result = rm.allreduce(on_gpu([1, 0], dtype), op=rm.Sum, name=str(dtype))
        assert is_on_gpu(result) and result.dtype == dtype
        assert [float(value) for value in result.tolist()] == [1.0 if dtype == torch.bool else size, 0]


def test_groups_and_sets():
    first, second = rm.grouped_allreduce([on_gpu([1.0]), on_gpu([2], torch.int64)], op=rm.Sum)
    assert (first.tolist(), second.tolist()) == ([size], [2 * size])
    some = rm.add_process_set([0, size - 1])
    if rank in (0, size - 1):
        assert rm.allreduce(on_gpu([1.0]), op=rm.Sum, process_set=some).tolist() == [2]
    rm.remove_process_set(some)


def test_a_prepared_group():
    tensors = [on_gpu([1.0, 2.0]), on_gpu(3.0), on_gpu([[4.0]])]
    before = fake_cuda.Event.recorded
    with rm.prepare_grouped_allreduce(tensors, "prepared", op=rm.Sum) as group:
        for turn in range(3):
            results = group.run()
            assert all(a is b and is_on_gpu(a) for a, b in zip(results, tensors))
            assert tensors[0].tolist() == [size ** (turn + 1), 2 * size ** (turn + 1)]
            assert tensors[1].item() == 3 * size ** (turn + 1)
            assert fake_cuda.Event.recorded == before + turn + 1  # one a run, whatever it has of tensors


def test_rows():
    rows = rm.allgather(on_gpu(torch.full((rank, 2), float(rank)), torch.bfloat16))
    assert is_on_gpu(rows) and rows.dtype == torch.bfloat16
    assert rows.tolist() == [[float(r)] * 2 for r in range(size) for _ in range(r)]
    assert rm.allgather(on_gpu(torch.empty((0, 3)))).shape == (0, 3)
    share = rm.reducescatter(on_gpu(torch.ones(size + 1)), op=rm.Sum)
    assert is_on_gpu(share) and share.tolist() == [size] * (2 if rank == 0 else 1)
    received, counts = rm.alltoall(on_gpu(torch.full((size,), float(rank))), splits=torch.ones(size, dtype=torch.int32))
    assert is_on_gpu(received) and received.tolist() == ranks.float().tolist()
    assert counts.tolist() == [1] * size and counts.device.type == "cpu"
    sent = on_gpu([float(rank)])
    assert rm.broadcast_(sent, size - 1) is sent and sent.tolist() == [size - 1]


def test_strides():
    table = on_gpu(torch.arange(6.0).reshape(2, 3))
    assert rm.allreduce(table.t(), op=rm.Sum).tolist() == (torch.arange(6.0).reshape(2, 3).t() * size).tolist()


def test_the_input_is_read_when_the_current_stream_has_made_it():
    mine, late = on_gpu([0.0]), on_gpu([5.0])
    before = fake_cuda.Event.recorded
    fake_cuda.stream.hold()
    fake_cuda.stream.write(mine, late)
    handle = rm.allreduce_async_(mine, op=rm.Sum, name="late")
    assert fake_cuda.Event.recorded == before + 1
    time.sleep(0.5)  # who doesn't wait for the stream is done by then
    assert mine.tolist() == [0.0] and not rm.poll(handle)
    fake_cuda.release()
    assert rm.synchronize(handle).tolist() == [5.0 * size]


def test_a_collective_is_no_part_of_a_graph():
    tensor = on_gpu([1.0])
    fake_cuda.capturing = True
    try:
        rm.allreduce_async_(tensor, op=rm.Sum, name="captured")
    except ValueError as error:
        assert "can't be captured in a CUDA graph" in str(error)
    else:
        raise AssertionError("not refused")
    finally:
        fake_cuda.capturing = False
    assert rm.allreduce(tensor, op=rm.Sum).tolist() == [size]


def test_memories_that_differ_are_one_error_on_every_rank():
    try:
        rm.allreduce(on_gpu([1.0]) if rank == 0 else torch.ones(1), name="where")
    except ringmaster.HorovodInternalError as error:
        assert "memory is a GPU's on rank 0 and the host's on rank" in str(error)
    else:
        raise AssertionError("not refused")


def trained(place, sparse):
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Embedding(4, 3, sparse=sparse), torch.nn.Linear(3, 1))
    model = place(model.double())
    optimizer = rm.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.5),
                                        named_parameters=model.named_parameters(), bucket_bytes=64)
    for step in range(3):
        optimizer.zero_grad()
        model(torch.tensor([(rank + step) % 4])).sum().backward()
        optimizer.step()
    return [parameter.data for parameter in model.parameters()]


def test_an_optimizer_does_what_it_does_on_the_cpu():
    for sparse in (False, True):
        expected = trained(lambda model: model, sparse)
        result = trained(fake_cuda.parameters_to_device, sparse)
        assert all(fake_cuda._is_device(data) for data in result)
        for one, other in zip(expected, result):
            assert torch.allclose(one, other), sparse


def test_what_joiners_get_is_on_the_host():
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    optimizer.state["momentum"] = collections.defaultdict(list, kept=[on_gpu([2.0])])
    state = rm.elastic.TorchState(optimizer=optimizer)
    kept = state.capture()["parts"]["optimizer"]["state"]["momentum"]["kept"]
    assert type(kept[0]) is torch.Tensor and kept[0].tolist() == [2.0]


def test_the_state_of_an_optimizer_travels_through_the_host():
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0 + rank)
    optimizer.state["momentum"] = {"kept": on_gpu([2.0 + rank])}
    rm.broadcast_optimizer_state(optimizer, root_rank=1)
    assert optimizer.param_groups[0]["lr"] == 2.0
    kept = optimizer.state["momentum"]["kept"]
    assert kept.tolist() == [3.0] and is_on_gpu(kept) == (rank == 1)


for name, test in sorted(globals().items()):
    if name.startswith("test_"):
        test()
rm.shutdown()
