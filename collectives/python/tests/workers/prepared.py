"""Prepared groups on every rank, with values that tell which ranks took part."""

import torch

import ringmaster.torch as rm
from expected_errors import expect

numbers = torch.ones(3)
early = rm.prepare_grouped_allreduce([numbers], "early", op=rm.Sum)  # asks nobody, so it may
expect((ValueError, rm.HorovodInternalError), early.run, "init")
rm.init()
rank, size = rm.rank(), rm.size()
ranks = torch.arange(size)
assert early.run()[0] is numbers and numbers.tolist() == [size] * 3


def test_again_and_again():
    tensors = [torch.zeros(3), torch.zeros(2, 2), torch.zeros(()), torch.zeros(0),
               torch.zeros(100000)]
    with rm.prepare_grouped_allreduce(tensors, name="again", op=rm.Sum) as group:
        for step in range(5):
            for index, tensor in enumerate(tensors):
                tensor.fill_(rank + step + 10 * index)
            results = group.run() if step % 2 else rm.synchronize(group.start())
            assert all(a is b for a, b in zip(results, tensors))
            for index, tensor in enumerate(tensors):
                wanted = (ranks + step + 10 * index).sum()
                assert (tensor == wanted).all(), (step, index)
    expect(ValueError, group.run, "has been freed")
    group.free()


def test_reductions_and_factors():
    for op, wanted in ((None, (ranks + 1.0).mean()), (rm.Average, (ranks + 1.0).mean()),
                       (rm.Sum, (ranks + 1.0).sum()), (rm.Min, 1), (rm.Max, size),
                       (rm.Product, (ranks + 1.0).prod())):
        tensors = [torch.full((3,), rank + 1.0), torch.full((2,), rank + 1.0)]
        rm.prepare_grouped_allreduce(tensors, "op", op=op).run()
        assert torch.allclose(torch.cat(tensors), torch.tensor(float(wanted)).expand(5)), op
    tensors = [torch.full((3,), rank + 1.0)]
    rm.prepare_grouped_allreduce(tensors, "factors", op=rm.Sum, prescale_factor=0.5,
                                 postscale_factor=4.0).run()
    assert tensors[0].tolist() == [2 * (ranks + 1).sum().item()] * 3


def test_types():
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
                  torch.bfloat16, torch.float32, torch.float64):
        tensors = [torch.full((3,), rank + 1, dtype=dtype), torch.full((5,), rank, dtype=dtype)]
        rm.prepare_grouped_allreduce(tensors, "type %s" % dtype, op=rm.Sum).run()
        assert tensors[0].tolist() == [(ranks + 1).sum().item()] * 3, dtype
        assert tensors[1].tolist() == [ranks.sum().item()] * 5, dtype
    flags = [torch.tensor([rank == 0, True, False])]
    rm.prepare_grouped_allreduce(flags, "flags", op=rm.Sum).run()
    assert flags[0].tolist() == [True, True, False]


def test_beside_other_operations():
    tensors = [torch.ones(4), torch.ones(5)]
    group = rm.prepare_grouped_allreduce(tensors, "beside", op=rm.Sum)
    for _ in range(3):
        for tensor in tensors:
            tensor.fill_(1)
        handles = [rm.allreduce_async(torch.ones(7), name="a", op=rm.Sum)]
        if rank == 0:
            handles.append(group.start())
            expect(ValueError, group.start, "already in flight")
        rm.broadcast_object(True, 0, "started")  # before that the group can't end
        if rank != 0:
            handles.append(group.start())
        handles.append(rm.allreduce_async(torch.ones(7), name="b", op=rm.Sum))
        for handle in reversed(handles):
            rm.synchronize(handle)
        assert tensors[1].tolist() == [size] * 5


def test_what_is_in_flight_outlives_the_group():
    tensors = [torch.ones(4), torch.ones(500)]
    group = rm.prepare_grouped_allreduce(tensors, "outlives", op=rm.Sum)
    handle = group.start()
    group.free()
    assert rm.synchronize(handle)[1].tolist() == [size] * 500


def test_in_a_process_set():
    pair = rm.add_process_set([0, size - 1])
    if pair.included():
        tensors = [torch.full((3,), float(rank)), torch.full((5,), float(rank))]
        group = rm.prepare_grouped_allreduce(tensors, "pair", op=rm.Sum, process_set=pair)
        group.run()
        assert tensors[1].tolist() == [size - 1] * 5
    rm.remove_process_set(pair)
    if rank in (0, size - 1):
        expect(ValueError, group.run, "")


def test_what_differs_is_said_on_every_rank_and_the_job_goes_on():
    wrong = [torch.ones(4), torch.ones(2, 3) if rank else torch.ones(3, 2)]
    group = rm.prepare_grouped_allreduce(wrong, "differs", op=rm.Sum)
    for _ in range(2):
        expect(rm.HorovodInternalError, group.run,
               "'allreduce.differs' differs between ranks: shape of tensor 1 of the prepared group "
               "is [3, 2] on rank 0 and [2, 3] on rank")
    assert wrong[0].tolist() == [1] * 4
    group = rm.prepare_grouped_allreduce([torch.ones(4)] * (rank + 1), "number", op=rm.Sum)
    expect(rm.HorovodInternalError, group.run, "number of tensors in the prepared group is 1 on")
    right = [torch.ones(4), torch.ones(2, 3)]
    rm.prepare_grouped_allreduce(right, "differs", op=rm.Sum).run()
    assert right[1].tolist() == [[size] * 3] * 2


def test_a_tensor_that_has_moved_is_refused_before_anything_is_sent():
    tensors = [torch.ones(4), torch.ones(4), torch.ones(4), torch.ones(4)]
    group = rm.prepare_grouped_allreduce(tensors, "moved", op=rm.Sum)
    kept = tensors[1].data
    tensors[1].data = torch.zeros(4)
    expect(ValueError, group.run, "tensors[1]: is at 0x")
    tensors[1].data = kept
    tensors[2].resize_(3)
    expect(ValueError, group.run, "tensors[2]: is at 0x")
    tensors[2].resize_(100000)
    expect(ValueError, group.run, "with shape (100000,), type torch.float32 on cpu, and when the "
                                  "group was prepared it was at 0x")
    tensors[2].data = torch.ones(4)
    expect(ValueError, group.run, "prepare it again")
    group = rm.prepare_grouped_allreduce(tensors, "moved", op=rm.Sum)
    assert group.run()[2].tolist() == [size] * 4


def test_wrong_arguments():
    prepare, one = rm.prepare_grouped_allreduce, torch.ones(3)
    expect(ValueError, lambda: prepare([], "x"), "tensors: is empty")
    expect(ValueError, lambda: prepare([one], ""), "name: is ''")
    expect(ValueError, lambda: prepare([one], "x", op=rm.Adasum), "op: is Adasum")
    expect(ValueError, lambda: prepare([one], "x", op=99), "op: is 99")
    expect(ValueError, lambda: prepare([one, 3], "x"), "must be a torch.Tensor")
    expect(ValueError, lambda: prepare([one, one.double()], "x"), "tensors[1]: has type")
    expect(ValueError, lambda: prepare([torch.ones(3, 4).t()], "x"), "must be contiguous")
    expect(ValueError, lambda: prepare([one], "x", process_set=3), "process_set")
    expect(ValueError, lambda: prepare([one], "x", prescale_factor=float("nan")), "finite")


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
        rm.barrier()

# The library begins again: what was prepared goes on, also in a process set with another number.
one_set = rm.ProcessSet([0, size - 1])
tensors = [torch.ones(3), torch.ones(4)]
for turn in range(2):
    rm.shutdown()
    others = [rm.ProcessSet([0])] * turn
    rm.init(process_sets=others + [one_set])
    if turn == 0 and one_set.included():
        in_set = rm.prepare_grouped_allreduce(tensors, "in set", op=rm.Max, process_set=one_set)
    numbers.fill_(1)
    assert early.run()[0].tolist() == [size] * 3
    if one_set.included():
        tensors[1].fill_(rank)
        assert in_set.run()[1].tolist() == [size - 1] * 4
print("done", flush=True)
