#!/usr/bin/env python3
"""DistributedDataParallel on scikit-learn's digits; workers may die, leave and join.

    ringmaster run examples/ddp/job.yaml        or        ringmaster run -np 4 python3 train.py

What makes it elastic: the state, the function under elastic.run with the model's wrapping inside
it, and commit() at the end of each step.
"""

import argparse

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import TensorDataset

import ringmaster.torch as rm
import ringmaster.torch.distributed as rmd

TRAINING = 1437  # of 1,797 images; the others judge


def datasets():
    data = load_digits()
    order = torch.randperm(len(data.target), generator=torch.Generator().manual_seed(7))
    images = torch.tensor(data.data, dtype=torch.float32)[order] / 16
    labels = torch.tensor(data.target)[order]
    return (TensorDataset(images[:TRAINING], labels[:TRAINING]),
            (images[TRAINING:], labels[TRAINING:]))


@rm.elastic.run
def train(state, training, arguments):
    # Entered again after each change of the world, with the state as it is.
    model = rmd.exact_mean(DistributedDataParallel(state.model), state.sampler)
    loader = rm.elastic.ElasticDataLoader(
        training, batch_sampler=state.sampler.batches(arguments.batch_size),
        num_workers=arguments.workers)
    while state.sampler.epoch < arguments.epochs:
        for images, labels in loader:
            state.optimizer.zero_grad()
            loss = cross_entropy(model(images), labels)
            loss.backward()
            state.optimizer.step()
            state.loss = loss.item()
            state.commit()  # the step is complete; workers come and go here
        if dist.get_rank() == 0:
            print("epoch %d: loss %.4f, %d workers" % (state.sampler.epoch - 1, state.loss,
                                                       dist.get_world_size()), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch-size", type=int, default=64, help="of all workers together")
    parser.add_argument("--workers", type=int, default=1, help="that load data, for each rank")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(7)
    training, (images, labels) = datasets()
    dist.init_process_group("ringmaster")
    net = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.ReLU(), torch.nn.Linear(96, 10))
    state = rm.elastic.TorchState(
        model=net, optimizer=torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9),
        sampler=rm.elastic.ElasticSampler(training, shuffle=True, seed=7), loss=0.0)
    train(state, training, arguments)
    if dist.get_rank() == 0:
        with torch.no_grad():
            accuracy = (net(images).argmax(1) == labels).float().mean().item()
        print("accuracy %.4f with %d workers" % (accuracy, dist.get_world_size()), flush=True)
    dist.destroy_process_group()
    rm.shutdown()


if __name__ == "__main__":
    main()
