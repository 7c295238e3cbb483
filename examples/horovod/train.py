"""Handwritten digits as a script for Horovod learns them: nothing in it is Ringmaster's own.

scikit-learn's digits (1,797 images of 8x8) stand for MNIST, so that nothing is downloaded.

    ringmaster run -np 4 python3 train.py
"""

import argparse

import horovod.torch as hvd
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--lr", type=float, default=0.02)
parser.add_argument("--momentum", type=float, default=0.9)
parser.add_argument("--seed", type=int, default=42)
parser.add_argument("--fp16-allreduce", action="store_true")
parser.add_argument("--use-adasum", action="store_true")
parser.add_argument("--gradient-predivide-factor", type=float, default=1.0)


class Net(torch.nn.Module):

    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 16, kernel_size=3, padding=1)
        self.norm = hvd.SyncBatchNorm(16)
        self.conv2 = torch.nn.Conv2d(16, 32, kernel_size=3, padding=1)
        self.fc1 = torch.nn.Linear(32 * 2 * 2, 64)
        self.fc2 = torch.nn.Linear(64, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.dropout(F.relu(self.fc1(x.flatten(1))), 0.2, training=self.training)
        return F.log_softmax(self.fc2(x), dim=1)


def datasets():
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    data = TensorDataset(images, torch.tensor(digits.target))
    return torch.utils.data.random_split(data, [1500, 297], torch.Generator().manual_seed(0))


def train(epoch, model, optimizer, loader, sampler):
    model.train()
    sampler.set_epoch(epoch)
    for data, target in loader:
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
    if hvd.rank() == 0:
        print("epoch %d: loss %.4f" % (epoch, loss.item()), flush=True)


def metric_average(value, name):
    return hvd.allreduce(torch.tensor(value), name=name).item()


def test(model, loader):
    model.eval()
    loss = accuracy = 0.0
    with torch.no_grad():
        for data, target in loader:
            output = model(data)
            loss += F.nll_loss(output, target, reduction="sum").item()
            accuracy += (output.argmax(1) == target).float().sum().item()
    samples = len(loader.sampler)
    loss = metric_average(loss / samples, "avg_loss")
    accuracy = metric_average(accuracy / samples, "avg_accuracy")
    if hvd.rank() == 0:
        print("test: loss %.4f, accuracy %.3f" % (loss, accuracy), flush=True)


def main():
    args = parser.parse_args()
    hvd.init()
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)

    training, testing = datasets()
    # Each rank has its own part of the data.
    sampler = DistributedSampler(training, num_replicas=hvd.size(), rank=hvd.rank())
    loader = DataLoader(training, batch_size=args.batch_size, sampler=sampler)
    test_sampler = DistributedSampler(testing, num_replicas=hvd.size(), rank=hvd.rank())
    test_loader = DataLoader(testing, batch_size=100, sampler=test_sampler)

    model = Net()
    # The global batch grows with the number of workers, and the learning rate with it.
    scale = hvd.size() if not args.use_adasum else 1
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr * scale, momentum=args.momentum)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    compression = hvd.Compression.fp16 if args.fp16_allreduce else hvd.Compression.none
    optimizer = hvd.DistributedOptimizer(
        optimizer, named_parameters=model.named_parameters(), compression=compression,
        op=hvd.Adasum if args.use_adasum else hvd.Average,
        gradient_predivide_factor=args.gradient_predivide_factor)

    for epoch in range(args.epochs):
        train(epoch, model, optimizer, loader, sampler)
    test(model, test_loader)


if __name__ == "__main__":
    main()
