"""Records a timeline for some of its steps only."""
import os

import torch

import ringmaster.torch as rm

rm.init()
path = os.environ["TIMELINE"]
for step in range(30):
    if step == 10:
        rm.start_timeline(path)
        try:
            rm.start_timeline(path)
        except ValueError as error:
            assert "already" in str(error)
        else:
            raise AssertionError("a second timeline was begun")
    if step == 20:
        rm.stop_timeline()
        rm.stop_timeline()
    rm.allreduce(torch.ones(1000), name="grad.%d" % (step // 10), op=rm.Sum)
    rm.end_step()
try:
    rm.start_timeline("/no/such/folder/t.json")
except ValueError as error:
    assert "/no/such/folder/t." in str(error)
else:
    raise AssertionError("a timeline was begun where none can be")
rm.allreduce(torch.ones(1))
rm.shutdown()
