"""init() after shutdown(), again and again in one process, with the same ProcessSet each time."""

import time

import pytest
import torch

import ringmaster.torch as rm

first = rm.ProcessSet([0])
took = []
for _ in range(4):
    began = time.monotonic()
    rm.init(process_sets=[first])
    took.append(time.monotonic() - began)
    assert first.process_set_id == 1 and first.ranks == [0]
    assert rm.allreduce(torch.ones(3), name="same", op=rm.Sum).tolist() == [rm.size()] * 3
    assert rm.allreduce(torch.ones(1)).item() == 1  # its name is counted, on all ranks alike
    rank, size = rm.rank(), rm.size()
    if rank == 0:
        assert rm.recv(torch.zeros(1), 1).item() == 7  # of this round's first send
    elif rank == 1:
        rm.send(torch.full((1,), 7.0), 0)
    # One rank asks for something that the others have not asked for: it is void, and its name free.
    alone = [rm.allreduce_async(torch.ones(1), name="alone"),
             rm.recv_async(torch.zeros(1), 1)] if rank == 0 else []
    rm.shutdown()
    assert not rm.is_initialized() and first.process_set_id is None
    for handle in alone:
        with pytest.raises(rm.HorovodInternalError, match="shutdown"):
            rm.synchronize(handle)
    for call in (rm.rank, rm.view, lambda: rm.allreduce(torch.ones(1))):
        with pytest.raises((ValueError, rm.HorovodInternalError), match="init"):
            call()
rm.init()
assert (rm.rank(), rm.size()) == (rank, size)
assert rm.allreduce(torch.ones(1), name="alone", op=rm.Sum).item() == size
print("again after", *("%.4f s" % seconds for seconds in took[1:]))
