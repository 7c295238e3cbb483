"""Training in rounds, each between init() and shutdown(), with a DistributedOptimizer: of a new one
in each round ("each"; "state": which stands in the state), or of one for all ("one"). One worker is
killed in between; the one that takes its place comes into whatever round the others are in.
"""

import os
import signal
import sys
import time

import torch

import ringmaster.torch as rm

WORLD, VICTIM, WAY = int(sys.argv[1]), sys.argv[2], sys.argv[3]  # "pod-0 1": its pod and slot
STEPS, DIES_AFTER, AT_MOST = 12, 2, 200
me = "%s %s" % (os.environ["RINGMASTER_POD_NAME"], os.environ["RINGMASTER_SLOT"])
dies = me == VICTIM and os.environ["RINGMASTER_INCARNATION"] == "1"


def make():
    model = torch.nn.Linear(2, 1)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    return model, rm.DistributedOptimizer(sgd, named_parameters=model.named_parameters())


@rm.elastic.run
def train(state, model, optimizer):
    while state.step < STEPS:
        optimizer.zero_grad()
        model(torch.ones(1, 2) * (rm.rank() + 1)).sum().backward()
        optimizer.step()
        state.step += 1
        state.size = rm.step_view().size
        time.sleep(0.02)
        state.commit()


one = make() if WAY == "one" else None
kept = rm.elastic.ObjectState(round=0, step=0, size=0)
while kept.round <= DIES_AFTER or kept.size < WORLD:
    rm.init()
    model, optimizer = one or make()
    state = kept
    if WAY == "state":
        state = rm.elastic.TorchState(model=model, optimizer=optimizer, **kept.values())
    if not rm.is_joining() and (WAY != "one" or kept.round == 0):
        rm.broadcast_parameters(model.state_dict())
    train(state, model, optimizer)
    for name in ("round", "size"):
        setattr(kept, name, getattr(state, name))
    weights = model.weight.tolist()
    assert rm.allgather_object(weights) == [weights] * rm.size()
    assert kept.round < AT_MOST, "nobody has come"
    kept.round, kept.step = kept.round + 1, 0
    rm.shutdown()
    print("round", kept.round, "of", kept.size, flush=True)
    if dies and kept.round == DIES_AFTER:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.2)
print("the end")
