"""A script as Horovod's users write it: commit() ends the step, train() is entered again after
changes.
"""

import os
import time

import torch

import ringmaster.torch as rm

rm.init()
torch.manual_seed(rm.rank() if not rm.is_joining() else 99)
model = torch.nn.Linear(3, 1)
optimizer = rm.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9),
                                    named_parameters=model.named_parameters(),
                                    end_step=False)  # state.commit() does, here in any case
state = rm.elastic.TorchState(model=model, optimizer=optimizer, batch=0, sizes=[])


def reset():
    """As scripts do it. Joiners must have this learning rate, too, or the weights differ."""
    print("reset", state.batch, flush=True)
    optimizer.param_groups[0]["lr"] = 0.01 * rm.size()
    if "IN_PLACE" not in os.environ:  # Horovod's examples train a step here: a joiner, too
        rm.allreduce(torch.ones(1), name="in.reset")


state.register_reset_callbacks([reset])
entries = []


@rm.elastic.run(in_place="IN_PLACE" in os.environ)
def train(state):
    entries.append(state.batch)
    print("enter", state.batch, rm.size(), flush=True)
    while state.batch < int(os.environ["BATCHES"]):
        time.sleep(0.02)
        optimizer.zero_grad()
        model(torch.ones(2, 3) * state.batch / 100).sum().backward()
        optimizer.step()
        state.batch += 1
        state.sizes = state.sizes + [rm.step_view().size]
        state.commit()
    return "done"


assert train(state) == "done"
final = rm.allgather_object([p.tolist() for p in model.parameters()] +
                            [state.batch, state.sizes, optimizer.param_groups[0]["lr"]])
assert all(other == final[0] for other in final), final
print("entries", entries, "sizes", sorted(set(state.sizes)), flush=True)
rm.shutdown()
