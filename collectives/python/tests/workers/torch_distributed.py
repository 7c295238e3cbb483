"""Every collective of torch.distributed with the backend ringmaster, on all ranks and in a group of
some.
"""

import gc
import os
import time
import weakref

import torch
import torch.distributed as dist

import ringmaster.torch as rm
import ringmaster.torch.distributed as rmd

SIZE = int(os.environ["SIZE"])
for wrong, says in (({"rank": SIZE + 3, "world_size": SIZE}, "rank: is %d" % (SIZE + 3)),
                    ({"world_size": SIZE + 1, "rank": -1}, "world_size: is %d" % (SIZE + 1))):
    try:
        dist.init_process_group("ringmaster", **wrong)
        raise RuntimeError("a wrong rank or size went through")
    except ValueError as error:
        assert says in str(error) and "job says" in str(error), error
dist.init_process_group("ringmaster")
dist.init_process_group("ringmaster")  # again is a no-op
rank, size = dist.get_rank(), dist.get_world_size()
assert (rank, size) == (rm.rank(), SIZE) and dist.get_backend() == "ringmaster"


def mine(*shape, of=rank):
    return torch.full(shape, float(of + 1))


def equal(found, wanted):
    assert torch.equal(found, torch.as_tensor(wanted, dtype=found.dtype)), (found, wanted)


def collectives(group, ranks):
    me, n = ranks.index(rank), len(ranks)
    total = float(sum(r + 1 for r in ranks))

    t = mine(2, 3)
    dist.all_reduce(t, group=group)
    equal(t, torch.full((2, 3), total))
    for op, wanted in ((dist.ReduceOp.MAX, max(ranks) + 1), (dist.ReduceOp.MIN, min(ranks) + 1),
                       (dist.ReduceOp.AVG, total / n)):
        t = mine(4)
        dist.all_reduce(t, op=op, group=group)
        assert torch.allclose(t, torch.full((4,), float(wanted))), (op, t)
    t = mine(3, 4).t()  # not contiguous
    work = dist.all_reduce(t, group=group, async_op=True)
    assert work.wait() and work.is_completed() and work.is_success() and work.exception() is None
    equal(t, torch.full((4, 3), total))
    assert torch.equal(work.result()[0], t)
    work = dist.all_reduce(mine(2), group=group, async_op=True)
    doubled = work.get_future().then(lambda done: done.value()[0] * 2)
    equal(doubled.wait(), torch.full((2,), 2 * total))

    t = mine(2)
    dist.broadcast(t, src=ranks[-1], group=group)
    equal(t, mine(2, of=ranks[-1]))
    objects = ["from %d" % rank]
    dist.broadcast_object_list(objects, src=ranks[0], group=group)
    assert objects == ["from %d" % ranks[0]]
    found = [None] * n
    dist.all_gather_object(found, {"rank": rank}, group=group)
    assert found == [{"rank": r} for r in ranks]

    parts = [torch.empty(2, 2) for _ in ranks]
    dist.all_gather(parts, mine(2, 2), group=group)
    for r, part in zip(ranks, parts):
        equal(part, mine(2, 2, of=r))
    lists = [[torch.empty(2, 2), torch.empty(3)] for _ in ranks]
    dist.all_gather_coalesced(lists, [mine(2, 2), mine(3)], group=group)
    for r, (first, second) in zip(ranks, lists):
        equal(first, mine(2, 2, of=r))
        equal(second, mine(3, of=r))
    whole = torch.empty(2 * n, 2)
    dist.all_gather_into_tensor(whole, mine(2, 2), group=group)
    equal(whole, torch.cat([mine(2, 2, of=r) for r in ranks]))

    out = torch.empty(3)
    dist.reduce_scatter(out, [mine(3) * (i + 1) for i in range(n)], group=group)
    equal(out, torch.full((3,), total * (me + 1)))
    out = torch.empty(2, 3)
    source = torch.cat([mine(2, 3) * (i + 1) for i in range(n)])
    dist.reduce_scatter_tensor(out, source, group=group)
    equal(out, torch.full((2, 3), total * (me + 1)))

    outs = [torch.empty(r + 1) for r in ranks]  # each gets another number of elements
    dist.all_to_all(outs, [mine(rank + 1) * 10 + r for r in ranks], group=group)
    for r, out in zip(ranks, outs):
        equal(out, torch.full((r + 1,), (r + 1) * 10.0 + rank))
    out = torch.empty(n, 2)
    dist.all_to_all_single(out, mine(n, 2), group=group)
    equal(out, torch.cat([mine(1, 2, of=r) for r in ranks]))
    out = torch.empty(sum(r + 1 for r in ranks))
    dist.all_to_all_single(out, mine(n * (rank + 1)), [r + 1 for r in ranks], [rank + 1] * n,
                           group=group)
    equal(out, torch.cat([mine(r + 1, of=r) for r in ranks]))

    root = ranks[0]
    t = mine(2)
    dist.reduce(t, dst=root, group=group)
    equal(t, torch.full((2,), total) if rank == root else mine(2))
    parts = [torch.empty(2) for _ in ranks] if rank == root else None
    dist.gather(mine(2), parts, dst=root, group=group)
    if rank == root:
        for r, part in zip(ranks, parts):
            equal(part, mine(2, of=r))
    out = torch.empty(2)
    dist.scatter(out, [mine(2, of=10 + r) for r in ranks] if rank == root else None, src=root,
                 group=group)
    equal(out, mine(2, of=10 + rank))
    dist.barrier(group=group)


def what_is_kept(group):
    """How many tensors of finished operations are still there."""
    tensors = weakref.WeakSet()
    works = []
    for number in range(40):
        t = mine(1000)
        tensors.add(t)
        work = dist.all_reduce(t, group=group, async_op=True)
        work.get_future().wait() if number % 2 else work.wait()
        if number == 1:
            works.append(work)
    dist.barrier(group=group)
    del t, work
    gc.collect()
    for _ in range(60):  # the thread that fulfils a future lets it go a moment later
        dist.barrier(group=group)
        if len(tensors) <= 1:
            break
        time.sleep(0.05)
    equal(works[0].result()[0], torch.full((1000,), float(sum(range(1, size + 1)))))
    equal(works[0].get_future().wait()[0], works[0].result()[0])
    return len(tensors)


kept = what_is_kept(dist.group.WORLD)
assert kept == 1, kept  # whose work the script has
collectives(dist.group.WORLD, list(range(size)))
some = list(range(size))[::2] if size > 2 else [0, 1]
groups = [dist.new_group(some), dist.new_group([size - 1]), dist.new_group()]
if rank in some:
    collectives(groups[0], some)
    assert dist.get_world_size(groups[0]) == len(some)
if rank == size - 1:
    collectives(groups[1], [size - 1])
collectives(groups[2], list(range(size)))



def between_two(group, ranks):
    me, n = ranks.index(rank), len(ranks)
    right, left = ranks[(me + 1) % n], ranks[me - 1]
    found = torch.zeros(4, 3).t()  # not contiguous
    works = [dist.isend(mine(3, 4), right, group), dist.irecv(found, left, group)]
    for work in works:
        work.wait()
    equal(found, mine(3, 4, of=left))
    # Two of each tag, which the receiver asks for in another order of tags.
    works = [dist.isend(mine(2) * 10 + i, right, group, tag=i % 2) for i in range(4)]
    tensors = [torch.zeros(2) for _ in range(4)]
    works += [dist.irecv(tensors[i], left, group, tag=i % 2) for i in (1, 3, 0, 2)]
    for work in works:
        work.wait()
    for i in range(4):
        equal(tensors[i], mine(2, of=left) * 10 + i)
    found = [torch.zeros(5) for _ in ranks]
    others = [r for r in ranks if r != rank]
    batch = [dist.P2POp(dist.isend, mine(5) * 100 + r, r, group) for r in others]
    batch += [dist.P2POp(dist.irecv, found[ranks.index(r)], r, group) for r in others]
    # What newer versions ask before.
    assert not getattr(group._get_backend(torch.device("cpu")), "supports_coalescing", False)
    for work in dist.batch_isend_irecv(batch):
        work.wait()
    for r in others:
        equal(found[ranks.index(r)], mine(5, of=r) * 100 + rank)
    many = [dist.isend(torch.tensor([float(i)]), right, group) for i in range(100)]
    one = torch.zeros(1)
    for i in range(100):
        assert dist.recv(one, left, group) == left
        equal(one, [float(i)])
    for work in many:
        work.wait()


def neighbours(tensor):
    """Even ranks and the odd ones after them."""
    if rank % 2:
        dist.recv(tensor, rank - 1)
    else:
        dist.send(tensor, rank + 1)


between_two(dist.group.WORLD, list(range(size)))
if rank in some:
    between_two(groups[0], some)
if rank in (0, size - 1):  # the others ask for nothing
    t = mine(3) if rank else torch.zeros(3)
    if rank:
        rm.send(t, 0, tag=5)
    else:
        assert rm.recv(t, size - 1, tag=5) is t
        equal(t, mine(3, of=size - 1))

works = [dist.all_reduce(torch.full((3,), float(i)), async_op=True) for i in range(300)]
for i, work in enumerate(works):  # more than there are names
    equal(work.result()[0], torch.full((3,), float(i * size)))

for call, kind, says in (
        (lambda: dist.recv(torch.ones(1)), NotImplementedError, "src: is None"),
        (lambda: dist.group.WORLD.send([torch.ones(1)], rank, 0), ValueError, "dst: is %d" % rank),
        (lambda: neighbours(torch.ones(2 + rank % 2)), rm.HorovodInternalError, "element count is"),
        (lambda: dist.all_reduce(torch.ones(2, dtype=torch.int32), op=dist.ReduceOp.BXOR),
         ValueError, "op: is"),
        (lambda: dist.all_gather([torch.empty(1)] * (size + 1), torch.ones(1)),
         rmd.WorldChangedError, "there is room for %d" % (size + 1)),
        (lambda: dist.all_reduce(torch.ones(rank + 1)), rm.HorovodInternalError, "")):
    try:
        call()
        raise RuntimeError("a wrong call went through")
    except kind as error:
        assert says in str(error), error
dist.barrier()
dist.destroy_process_group()
assert not dist.is_initialized()
dist.init_process_group("ringmaster", init_method="tcp://nowhere:1", rank=rank, world_size=size)
t = mine(1)
dist.all_reduce(t)
dist.destroy_process_group()
rm.shutdown()
print("all well", torch.__version__)
