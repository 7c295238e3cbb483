"""The digits example's training by DistributedDataParallel, with the log by which its checker
judges a run: each worker's parameters, samples and loss after each step.
"""

import os
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import digits
import ringmaster.torch as rm
import ringmaster.torch.distributed as rmd
from audit import Audit

EPOCHS, PACE = int(os.environ["EPOCHS"]), float(os.environ["PACE"])


@rm.elastic.run
def train(state, data, audit):
    print("entered with", dist.get_world_size(), flush=True)
    model = DistributedDataParallel(state.model, bucket_cap_mb=0.02)  # several buckets
    rmd.exact_mean(model, state.sampler)
    while state.sampler.epoch < EPOCHS:
        epoch = state.sampler.epoch
        for indices in state.sampler.batches(digits.GLOBAL_BATCH):
            view = rm.step_view()
            time.sleep(PACE)
            state.optimizer.zero_grad()
            loss = digits.loss_of(model, data, indices)
            loss.backward()
            state.optimizer.step()
            done = state.sampler.last_settled

            def write():
                audit.write(step=rm.last_step().step, view=view.number, rank=view.rank,
                            size=view.size, epoch=epoch, samples=done.own,
                            counted=done.counted, loss=loss.item(),
                            params=digits.hash_of(state.model))

            try:
                state.commit()
            except rm.HostsUpdatedInterrupt:
                write()
                raise
            write()
        if rm.last_step():  # a joiner may come when an epoch has just ended
            audit.write(epoch_end=epoch, step=rm.last_step().step,
                        accuracy=digits.accuracy_of(state.model, data))


torch.set_num_threads(1)
data = digits.Digits()
dist.init_process_group("ringmaster")
model = digits.make_model()
state = rm.elastic.TorchState(model=model, optimizer=digits.make_optimizer(model),
                              sampler=rm.elastic.ElasticSampler(data, seed=digits.SEED))
train(state, data, Audit(os.environ["RINGMASTER_AUDIT_DIR"], os.environ))
rm.shutdown()
