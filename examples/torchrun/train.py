#!/usr/bin/env python3
"""A script as torchrun starts them: DistributedDataParallel on gloo, with a checkpoint file.

    ringmaster run examples/torchrun/job.yaml
    ringmaster run -np 4 --backend none python3 train.py --checkpoint c.pt
    torchrun --nproc-per-node 4 train.py --checkpoint c.pt

Nothing in it is Ringmaster's. When the world changes all processes are started again, so it goes on
from its checkpoint.
"""

import argparse
import os

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

TRAINING = 1437  # of 1,797 images; the others judge


def datasets():
    data = load_digits()
    order = torch.randperm(len(data.target), generator=torch.Generator().manual_seed(7))
    images = torch.tensor(data.data, dtype=torch.float32)[order] / 16
    labels = torch.tensor(data.target)[order]
    return (TensorDataset(images[:TRAINING], labels[:TRAINING]),
            (images[TRAINING:], labels[TRAINING:]))


def load(path, net, optimizer):
    """The epochs that are done."""
    if not os.path.exists(path):
        return 0
    saved = torch.load(path)
    net.load_state_dict(saved["net"])
    optimizer.load_state_dict(saved["optimizer"])
    return saved["epochs"]


def save(path, net, optimizer, epochs):
    # The new file takes the old one's place at once, so whenever this process ends one is whole.
    torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "epochs": epochs},
               path + ".new")
    os.replace(path + ".new", path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch-size", type=int, default=64, help="of all workers together")
    parser.add_argument("--checkpoint", default="checkpoint.pt", help="on a disk that all see")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(7)
    training, (images, labels) = datasets()
    dist.init_process_group("gloo")  # RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT say the rest
    rank, size = dist.get_rank(), dist.get_world_size()
    net = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.ReLU(), torch.nn.Linear(96, 10))
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    begun = load(arguments.checkpoint, net, optimizer)
    if rank == 0:
        print("begins after %d epochs with %d workers" % (begun, size), flush=True)
    sampler = DistributedSampler(training)
    loader = DataLoader(training, batch_size=arguments.batch_size // size, sampler=sampler)
    for epoch in range(begun, arguments.epochs):
        sampler.set_epoch(epoch)
        for batch, answers in loader:
            optimizer.zero_grad()
            loss = cross_entropy(model(batch), answers)
            loss.backward()
            optimizer.step()
        if rank == 0:
            save(arguments.checkpoint, net, optimizer, epoch + 1)
            print("epoch %d: loss %.4f, %d workers" % (epoch, loss.item(), size), flush=True)
    dist.barrier()
    if rank == 0:
        with torch.no_grad():
            accuracy = (net(images).argmax(1) == labels).float().mean().item()
        print("accuracy %.4f with %d workers" % (accuracy, size), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
