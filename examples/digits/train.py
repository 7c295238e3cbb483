#!/usr/bin/env python3
"""Trains on scikit-learn's digits with whatever workers there are. The job beside it: job.yaml.

    ringmaster run examples/digits/job.yaml        or        python3 train.py   (one process)

Environment (so that a manifest can set it): DIGITS_EPOCHS, DIGITS_PACE_MS (sleep in each step, so
that there is something to see), RINGMASTER_AUDIT_DIR (where the audit log goes).
"""

import argparse
import math
import os
import time

import torch

import digits
import ringmaster.torch as rm
from audit import Audit


def number(text):
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError("is %d, must be 0 or more" % value)
    return value


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=number, default=os.environ.get("DIGITS_EPOCHS", "30"),
                        help="passes over the data (default: DIGITS_EPOCHS, else 30)")
    parser.add_argument("--pace-ms", type=number, default=os.environ.get("DIGITS_PACE_MS", "0"),
                        help="sleep in each step (default: DIGITS_PACE_MS, else 0)")
    parser.add_argument("--audit", default=os.environ.get("RINGMASTER_AUDIT_DIR", ""),
                        help="folder of the audit log (default: RINGMASTER_AUDIT_DIR; empty: none)")
    parser.add_argument("--reference", action="store_true",
                        help="print the accuracy of plain PyTorch in one process, and end")
    return parser.parse_args()


@rm.elastic.run(in_place=True)
def train(state, data, arguments, audit):
    while state.sampler.epoch < arguments.epochs:
        epoch = state.sampler.epoch
        for indices in state.sampler.batches(digits.GLOBAL_BATCH):
            view = rm.step_view()
            time.sleep(arguments.pace_ms / 1000)
            state.optimizer.zero_grad()
            loss = digits.loss_of(state.model, data, indices)
            loss.backward()
            state.optimizer.step()  # the step is complete when this returns
            done = state.sampler.last_settled
            if done is None:
                continue  # dropped by mistake and let in again: the step was the others'
            audit.write(step=rm.last_step().step, view=view.number, rank=view.rank, size=view.size,
                        epoch=epoch, samples=done.own, counted=done.counted,
                        loss=loss.item(), params=digits.hash_of(state.model))
            rm.report(loss=loss.item(), samples=state.sampler.done,
                      total_steps=arguments.epochs * math.ceil(len(data) / digits.GLOBAL_BATCH))
        if state.sampler.last_settled is not None:  # a joiner may come when an epoch has just ended
            accuracy = digits.accuracy_of(state.model, data)
            audit.write(epoch_end=epoch, step=rm.last_step().step, accuracy=accuracy)
            rm.report(accuracy=accuracy)


def main():
    arguments = parse_arguments()
    torch.set_num_threads(1)
    data = digits.Digits()
    if arguments.reference:
        print("accuracy of one process: %.4f" % digits.reference_accuracy(arguments.epochs, data))
        return
    rm.init()
    model = digits.make_model()
    optimizer = rm.DistributedOptimizer(digits.make_optimizer(model),
                                        named_parameters=model.named_parameters())
    sampler = rm.elastic.ElasticSampler(data, shuffle=True, seed=digits.SEED)
    state = rm.elastic.TorchState(model=model, optimizer=optimizer, sampler=sampler)
    train(state, data, arguments, Audit(arguments.audit, os.environ))
    if rm.rank() == 0:
        print("accuracy after %d epochs: %.4f"
              % (arguments.epochs, digits.accuracy_of(model, data)))
    rm.shutdown()


if __name__ == "__main__":
    main()
