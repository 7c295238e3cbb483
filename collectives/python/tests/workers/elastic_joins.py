"""Each pass ends with a join. Rank 1 of three dies in the first pass while rank 2 has joined: rank 0
enters the training function again and comes to the same join.
"""

import os
import signal

import torch

import ringmaster.torch as rm

rm.init()
me = rm.rank()
state = rm.elastic.ObjectState(epoch=0)
resets = []
state.register_reset_callbacks([lambda: resets.append(rm.size())])


@rm.elastic.run(in_place=os.environ["IN_PLACE"] == "1")
def train(state):
    while state.epoch < 3:
        for batch in range(6 if me == 0 else 2):
            rm.allreduce(torch.ones(2), name="gradient")
            state.commit()
            if me == 1 and batch == 1:
                os.kill(os.getpid(), signal.SIGKILL)
        rm.join()
        state.epoch += 1
        state.commit()


train(state)
assert resets == [2], resets
rm.shutdown()
