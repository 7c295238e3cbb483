"""What a script finds under Horovod's names: modules, handles, strides, sparse tensors, sets of
ranks.
"""

import importlib
import json
import os
import tempfile

import torch

import horovod.torch as hvd
from horovod.common.exceptions import HorovodInternalError
from horovod.torch.mpi_ops import allreduce_async, synchronize
from expected_errors import expect

hvd.init()
rank, size = hvd.rank(), hvd.size()
ranks = list(range(size))
total = sum(r + 1 for r in ranks)


def test_modules_are_those_of_ringmaster():
    import ringmaster.torch as rm
    assert hvd.allreduce is rm.allreduce and HorovodInternalError is rm.HorovodInternalError
    for name, has in (("torch.elastic", "run"), ("torch.elastic.state", "TorchState"),
                      ("torch.elastic.sampler", "ElasticSampler"),
                      ("torch.functions", "broadcast_object"), ("torch.compression", "Compressor"),
                      ("torch.optimizer", "DistributedOptimizer"), ("torch.sync_batch_norm",
                                                                    "SyncBatchNorm"),
                      ("common.util", "gloo_built"), ("common.process_sets", "ProcessSet"),
                      ("common.elastic", "ObjectState"), ("common.basics",
                                                          "HorovodBasics"), ("runner", "run")):
        assert hasattr(importlib.import_module("horovod." + name), has), name


def test_a_communicator_has_all_ranks():
    for others in (ranks[::-1], ranks[1:]) if size > 1 else ():
        hvd.shutdown()
        expect(ValueError, lambda: hvd.init(others), "not the list of all ranks")
    hvd.shutdown()
    hvd.init(ranks)
    assert (hvd.rank(), hvd.size()) == (rank, size)


def test_a_handle_is_an_integer():
    handles = [allreduce_async(torch.ones(2), op=hvd.Sum, name="h%d" % i) for i in range(3)]
    assert len({int(handle) for handle in handles}) == 3 and isinstance(handles[0], int)
    for number in {handle: int(handle) for handle in handles}.values():
        assert synchronize(number).tolist() == [size, size]
    assert hvd.poll(handles[0])
    expect(ValueError, lambda: synchronize(handles[0]), "already")
    expect(ValueError, lambda: synchronize(123456789), "123456789")
    alone = [int(allreduce_async(torch.ones(2), op=hvd.Sum, name="i%d" % i)) for i in range(3)]
    group = int(hvd.grouped_allreduce_async([torch.ones(1)] * 2, op=hvd.Sum, name="group"))
    assert [type(number) for number in alone] == [int] * 3
    for number in alone:  # whose objects are gone
        while not hvd.poll(number):
            pass
        assert synchronize(number).tolist() == [size, size]
        expect(ValueError, lambda: synchronize(number), str(number))
    assert [part.item() for part in synchronize(group)] == [size, size]
    int(hvd.broadcast_async(torch.ones(1), 0))  # shutdown() ends that it is kept
    assert synchronize(hvd.broadcast_async(torch.ones(1) * rank, 1)).item() == 1


def test_tensors_of_any_strides():
    square = torch.arange(12.0).reshape(3, 4) + rank
    whole = sum(torch.arange(12.0).reshape(3, 4) + r for r in ranks)
    assert torch.equal(hvd.allreduce(square.t(), op=hvd.Sum), whole.t())
    column = square.clone()
    assert hvd.allreduce_(column[:, 1], op=hvd.Sum).tolist() == whole[:, 1].tolist()
    assert torch.equal(column[:, 1], whole[:, 1]) and torch.equal(column[:, 2], square[:, 2])
    sent = square.clone()
    view = sent.t()[1:]
    assert hvd.broadcast_(view, size - 1) is view
    assert torch.equal(sent[:, 1:], (torch.arange(12.0).reshape(3, 4) + size - 1)[:, 1:])
    assert sent[0, 0] == rank
    assert torch.equal(hvd.allgather(square.t()[:1]),
                       torch.stack([torch.tensor([0.0, 4, 8]) + r for r in ranks]))
    group = [square[:, 0].clone(), square.clone().t()]
    hvd.grouped_allreduce_(group, op=hvd.Max)
    assert torch.equal(group[1].t(), torch.arange(12.0).reshape(3, 4) + size - 1)
    expanded = torch.tensor([float(rank)]).expand(5)
    assert hvd.allreduce(expanded, op=hvd.Sum).tolist() == [sum(ranks)] * 5
    images = torch.full((2, 3, 4, 4), rank + 1.0).to(memory_format=torch.channels_last)
    assert torch.equal(hvd.allreduce(images, op=hvd.Sum), torch.full((2, 3, 4, 4), float(total)))
    negated = torch.tensor([1 + 2j]).conj().imag  # "minus what stands in memory"
    assert hvd.allreduce(negated, op=hvd.Sum).tolist() == [-2.0 * size]


def test_alltoall_asynchronously_gives_the_splits_too():
    rows, received = synchronize(hvd.alltoall_async(torch.full((size,), rank)))
    assert rows.tolist() == ranks and received.tolist() == [1] * size
    _, received = hvd.alltoall(torch.zeros(size), splits=torch.ones(size, dtype=torch.int64))
    assert received.dtype == torch.int64


def test_sparse_tensors():
    mine = torch.sparse_coo_tensor(torch.tensor([[0, rank + 1]]), torch.full((2, 2), rank + 1.0),
                                   (size + 1, 2))
    everyone = sum(torch.sparse_coo_tensor(torch.tensor([[0, r + 1]]), torch.full((2, 2), r + 1.0),
                                           (size + 1, 2)).to_dense() for r in ranks)
    handle = hvd.sparse_allreduce_async(mine, name="sparse", op=hvd.Sum)
    result = handle()
    assert result.is_sparse and torch.equal(result.to_dense(), everyone)
    average = synchronize(hvd.sparse_allreduce_async(mine, "sparse", hvd.Average))
    assert torch.allclose(average.to_dense(), everyone / size)
    nothing = torch.sparse_coo_tensor(torch.empty(1, 0, dtype=torch.int64), torch.empty(0, 2),
                                      (size + 1, 2))
    assert synchronize(hvd.sparse_allreduce_async(nothing, "nothing",
                                                  hvd.Sum)).to_dense().sum() == 0
    expect(ValueError, lambda: hvd.sparse_allreduce_async(mine, "max", hvd.Max), "Sum or Average")
    expect(ValueError, lambda: hvd.sparse_allreduce_async(torch.ones(2), "dense", hvd.Sum),
           "sparse_coo")
    expect(ValueError, lambda: hvd.allreduce(mine), "sparse_allreduce_async")


def test_objects_and_parameters_within_a_set():
    even = hvd.ProcessSet(range(0, size, 2))
    assert even.size() is None and even.rank() is None and even.included() is None
    hvd.add_process_set(even)
    if even.included():
        root = even.ranks[-1]
        assert hvd.allgather_object(rank, process_set=even) == even.ranks
        assert hvd.broadcast_object("from %d" % rank, root, process_set=even) == "from %d" % root
        assert hvd.broadcast_object(rank, root, name="named", process_set=even) == root
        tensor = torch.full((2, 2), float(rank)).t()
        hvd.broadcast_parameters({"w": tensor, "none": None}, root, process_set=even)
        assert tensor.tolist() == [[root] * 2] * 2
        assert hvd.synchronize(
            hvd.sparse_allreduce_async(torch.eye(2).to_sparse(), op=hvd.Average,
                                       process_set=even)).to_dense().equal(torch.eye(2))
    tensors = [torch.full((2,), float(rank)), torch.tensor(rank == 0)]
    hvd.broadcast_parameters(tensors, 0)
    hvd.broadcast_parameters(iter([("b", tensors[0])]), 0)
    assert tensors[0].tolist() == [0, 0] and tensors[1].item() is True
    expect(ValueError, lambda: hvd.broadcast_parameters(3, 0), "params: is a int")
    expect(ValueError, lambda: hvd.broadcast_parameters([1, 2], 0), "neither")
    expect(ValueError, lambda: hvd.allreduce(torch.ones(1), process_set=0), "process_set: is a int")
    hvd.remove_process_set(even)
    assert even.size() is None


def test_an_optimizers_state_of_any_kind():
    weight = torch.nn.Parameter(torch.full((2,), float(rank)))
    optimizer = torch.optim.LBFGS([weight], lr=0.1 * (rank + 1))
    optimizer.step(lambda: weight.grad.sum()
                   if weight.grad is not None else (weight.sum().backward(), 0)[1])
    hvd.broadcast_optimizer_state(optimizer, root_rank=1, model=None)
    assert optimizer.param_groups[0]["lr"] == 0.2


def test_what_the_installation_has():
    assert hvd.is_homogeneous() and hvd.gloo_built() and hvd.gloo_enabled()
    by_mpi = os.environ.get("RINGMASTER_BACKEND") == "mpi"  # then mpirun has started this
    assert hvd.mpi_enabled() == hvd.mpi_threads_supported() == by_mpi
    assert hvd.mpi_built() or not by_mpi
    assert not (hvd.ddl_built() or hvd.ccl_built() or hvd.rocm_built())
    for name in ("PATH_FOR_NOBODY", "HOROVOD_LOCAL_SIZE"):
        os.environ[name] = str(size + 1)
    assert hvd.is_homogeneous()  # of one pod
    del os.environ["HOROVOD_LOCAL_SIZE"]


def test_adasum_counts_once_what_ranks_have_in_common():
    same = hvd.allreduce(torch.tensor([3.0, 4.0]), op=hvd.Adasum)
    assert torch.allclose(same, torch.tensor([3.0, 4.0])), same
    own = torch.zeros(size)
    own[rank] = 2.0
    both = hvd.grouped_allreduce([own, torch.ones(3)], op=hvd.Adasum, name="adasum")
    assert torch.allclose(both[0], torch.full((size,), 2.0)), both
    assert torch.allclose(both[1], torch.ones(3)), both
    expect(ValueError, lambda: hvd.allreduce(torch.ones(1, dtype=torch.int32), op=hvd.Adasum),
           "floating point")
    expect(ValueError, lambda: hvd.reducescatter(torch.ones(2), op=hvd.Adasum), "op is 5")
    weight = torch.nn.Parameter(torch.ones(1))
    expect(ValueError,
           lambda: hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1), op=hvd.Max),
           "op: is Max")
    hvd.barrier()


def test_an_adasum_optimizer_combines_updates():
    weight = torch.nn.Parameter(torch.zeros(size + 1))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=0.5), op=hvd.Adasum)
    for step in range(2):
        optimizer.zero_grad()
        direction = torch.zeros(size + 1)
        direction[rank] = -2.0  # of this rank alone
        (weight * direction).sum().backward()
        with optimizer.skip_synchronize():
            optimizer.step()
    assert torch.allclose(weight, torch.tensor([2.0] * size + [0.0])), weight
    for step in range(2):
        optimizer.zero_grad()
        (weight[size] * -2.0).backward()  # the same on all ranks
        optimizer.step()
    assert torch.allclose(weight[size], torch.tensor(2.0)), weight


def test_a_timeline_has_every_operation():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "timeline.json")
        hvd.start_timeline(path, mark_cycles=True)
        hvd.allreduce(torch.ones(2), name="in the timeline")
        hvd.allgather(torch.ones(2), name="rows")
        expect(ValueError, lambda: hvd.start_timeline(path), "already")
        hvd.stop_timeline()
        hvd.stop_timeline()
        with open(path if rank == 0 else path[:-len("json")] + "rank%d.json" % rank) as file:
            events = json.load(file)
        rows = {event["tid"]: event["args"]["name"] for event in events
                if event["name"] == "thread_name"}
        spans = [(rows[event["tid"]], event["name"]) for event in events if event["ph"] == "X"
                 and rows[event["tid"]].startswith("all")]
        assert spans == [(name, phase + kind) for name, kind in (
            ("allreduce.in the timeline", "ALLREDUCE"), ("allgather.rows", "ALLGATHER"))
            for phase in ("NEGOTIATE_", "")], spans


for test in [value for name, value in sorted(globals().items()) if name.startswith("test_")]:
    test()
hvd.shutdown()
