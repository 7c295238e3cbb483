"""The elastic form of train.py, as a script for Horovod has it: workers may die, leave and join.

    ringmaster run -np 4 python3 elastic.py
"""

import horovod.torch as hvd
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from train import Net, datasets, parser

args = parser.parse_args()
hvd.init()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

training, testing = datasets()
sampler = hvd.elastic.ElasticSampler(training, shuffle=True, seed=args.seed)
loader = DataLoader(training, batch_size=args.batch_size, sampler=sampler)

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr * hvd.size(), momentum=args.momentum)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())


@hvd.elastic.run
def train(state):
    # Entered again after each change of the world, with what was committed last.
    for state.epoch in range(state.epoch, args.epochs):
        state.model.train()
        loss = None  # and so it stays where the world changed after the epoch's last batch
        for batch, (data, target) in enumerate(loader):
            state.optimizer.zero_grad()
            loss = F.nll_loss(state.model(data), target)
            loss.backward()
            state.optimizer.step()
            sampler.record_batch(batch, args.batch_size)
            state.commit()
        if hvd.rank() == 0 and loss is not None:
            print("epoch %d: loss %.4f, %d workers" % (state.epoch, loss.item(), hvd.size()),
                  flush=True)
        sampler.set_epoch(state.epoch + 1)
        state.epoch += 1
        state.commit()


def on_state_reset():
    # The global batch has another size now, and the learning rate follows it.
    for group in optimizer.param_groups:
        group["lr"] = args.lr * hvd.size()


state = hvd.elastic.TorchState(model=model, optimizer=optimizer, sampler=sampler, epoch=0)
state.register_reset_callbacks([on_state_reset])
train(state)

model.eval()
with torch.no_grad():
    images, labels = zip(*testing)
    right = model(torch.stack(images)).argmax(1) == torch.stack(labels)
accuracy = hvd.allreduce(right.float().mean(), name="accuracy").item()
if hvd.rank() == 0:
    print("test: accuracy %.3f with %d workers" % (accuracy, hvd.size()), flush=True)
