"""Training in rounds, each between init() and shutdown(). One worker is killed in between; the one
that takes its place comes into whatever round the others are in. It ends when the world is whole
again.
"""

import os
import signal
import sys
import time

import torch

import ringmaster.torch as rm

WORLD, VICTIM = int(sys.argv[1]), sys.argv[2]  # "pod-0 1": its pod and slot
STEPS, DIES_AFTER, AT_MOST = 12, 2, 200
state = rm.elastic.ObjectState(round=0, step=0, total=0.0, size=0)
me = "%s %s" % (os.environ["RINGMASTER_POD_NAME"], os.environ["RINGMASTER_SLOT"])
dies = me == VICTIM and os.environ["RINGMASTER_INCARNATION"] == "1"


@rm.elastic.run
def train(state):
    while state.step < STEPS:
        state.total += rm.allreduce(torch.ones(1), name="x").item()
        state.step += 1
        state.size = rm.step_view().size
        time.sleep(0.02)
        state.commit()


while state.round <= DIES_AFTER or state.size < WORLD:
    rm.init()
    train(state)
    assert state.total == (state.round + 1) * STEPS, (state.total, state.round)
    assert state.round < AT_MOST, "nobody has come"
    state.round, state.step = state.round + 1, 0
    rm.shutdown()
    print("round", state.round, "of", state.size, flush=True)
    if dies and state.round == DIES_AFTER:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.2)
print("the end")
