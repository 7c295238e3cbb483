"""A DataLoader with workers that read ahead, through deaths and joins: each sample counts once an
epoch, and what a rank trains on is what its batch says.

Prints a line for each step of this rank; the test counts them.
"""

import json
import os
import time

import torch

import ringmaster.torch as rm

SAMPLES, EPOCHS, BATCH = 203, int(os.environ["EPOCHS"]), int(os.environ.get("BATCH", 12))


class Numbers(torch.utils.data.Dataset):

    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        assert torch.utils.data.get_worker_info() is not None
        return {"x": torch.tensor([1.0, index / SAMPLES]), "index": index, "name": str(index)}


@rm.elastic.run(in_place=True)
def train(state):
    loader = rm.elastic.ElasticDataLoader(
        Numbers(), batch_sampler=state.sampler.batches(BATCH), num_workers=2, prefetch_factor=2,
        persistent_workers="PERSISTENT" in os.environ)
    while state.sampler.epoch < EPOCHS:
        epoch = state.sampler.epoch
        for batch in loader:
            own = batch["index"].tolist()
            assert batch["name"] == [str(index) for index in own] and len(batch["x"]) == len(own)
            state.optimizer.zero_grad()
            (state.model(batch["x"]) - 1).pow(2).mean().backward()
            time.sleep(float(os.environ.get("PACE", 0)))
            state.optimizer.step()
            settled = state.sampler.last_settled
            assert set(settled.own) <= set(own), (settled.own, own)
            print(json.dumps({"step": rm.last_step().step, "epoch": epoch,
                              "counted": settled.counted}), flush=True)


rm.init()
torch.set_num_threads(1)
torch.manual_seed(3)
model = torch.nn.Linear(2, 1)
optimizer = rm.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9))
sampler = rm.elastic.ElasticSampler(Numbers(), seed=5)
train(rm.elastic.TorchState(model=model, optimizer=optimizer, sampler=sampler))
everyone = rm.allgather_object([p.tolist() for p in model.parameters()])
assert all(other == everyone[0] for other in everyone), everyone
rm.shutdown()
