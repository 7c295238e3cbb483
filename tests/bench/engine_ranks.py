"""The ranks of engine_cost.py: they wait for what to measure, measure it together, and rank 0 tells the times.

A command is a line of JSON in a rank's own pipe, so ranks that are not asked for anything sleep, and several such jobs and other programs can take turns
on one machine. Pipes lie in the folder RM_BENCH: `commands.RANK` and `results`.
"""

import json
import os
import statistics
import time

PARTS = 5


def timed(call, repeats, barrier):
    """The median over parts of the mean time of a call, in us."""
    for _ in range(2):
        call()
    each = max(1, repeats // PARTS)
    taken = []
    for _ in range(PARTS):
        barrier()
        begin = time.perf_counter()
        for _ in range(each):
            call()
        taken.append((time.perf_counter() - begin) / each * 1e6)
    return statistics.median(taken)


class Measurements:

    def __init__(self, rm, torch):
        self._rm, self._torch = rm, torch
        self._sets = None  # added when they are first measured

    def _zeros(self, size):
        return self._torch.full((size // 4,), 0.0)  # written, so that its pages are there; their sums stay what they are

    def allreduce(self, size, apart, repeats):
        """One named tensor; `apart`: the result beside it. The memory is the same in each repetition, as the communicator's is."""
        from ringmaster.torch.starting import start_allreduce
        source = self._zeros(size)
        target = self._torch.empty_like(source) if apart else source
        name = b"bench.%d.%d" % (size, apart)
        return timed(lambda: start_allreduce(source, target, name, self._rm.Sum).wait(), repeats, self._rm.barrier)

    def together(self, size, buckets, repeats):
        """Several tensors that are ready together, in place, as a backward pass leaves its last buckets."""
        tensors = [self._zeros(size) for _ in range(buckets)]

        def step():
            for handle in [self._rm.allreduce_async_(tensor, name="bucket.%d" % i, op=self._rm.Sum) for i, tensor in enumerate(tensors)]:
                self._rm.synchronize(handle)

        return timed(step, repeats, self._rm.barrier)

    def sets(self, size, repeats):
        """In place, in a set of the even ranks, while that of the odd ones does the same; of two ranks in one of both."""
        rm, tensor = self._rm, self._zeros(size)
        if self._sets is None:
            step = 2 if rm.size() > 2 else 1
            self._sets = [rm.add_process_set(list(range(first, rm.size(), step))) for first in range(step)]
        mine = self._sets[rm.rank() % len(self._sets)]
        return timed(lambda: rm.allreduce_(tensor, name="set", op=rm.Sum, process_set=mine), repeats, rm.barrier)

    def group(self, size, tensors, repeats):
        listed = [self._zeros(size) for _ in range(tensors)]
        return timed(lambda: self._rm.grouped_allreduce_(listed, name="group", op=self._rm.Sum), repeats, self._rm.barrier)

    def prepared(self, size, tensors, repeats):
        """A prepared group and, in turns with it, one tensor of all its bytes: of each the least and the median of the mean times of 20 calls, in us."""
        listed, whole = [self._zeros(size) for _ in range(tensors)], self._zeros(size * tensors)
        group = self._rm.prepare_grouped_allreduce(listed, name="prepared", op=self._rm.Sum)
        calls = [group.run, lambda: self._rm.allreduce_(whole, name="whole", op=self._rm.Sum)]
        taken = [[], []]
        for _ in range(repeats):
            for call, times in zip(calls, taken):
                self._rm.barrier()
                begin = time.perf_counter()
                for _ in range(20):
                    call()
                times.append((time.perf_counter() - begin) / 20 * 1e6)
        group.free()
        return [figure(times) for times in taken for figure in (min, statistics.median)]

    def memory(self, size, parameters):
        """Memory that a step needs on top of the parameters, over the gradients' bytes: (without any reduction, with DistributedOptimizer)."""
        ratios = []
        for reduces in (False, True):
            weights = [self._torch.nn.Parameter(self._zeros(size)) for _ in range(parameters)]
            optimizer = self._torch.optim.SGD(weights, lr=0.0)
            if reduces:
                optimizer = self._rm.DistributedOptimizer(optimizer, end_step=False)
            for _ in range(3):  # the first ones make what stays
                optimizer.zero_grad(set_to_none=True)
                before = _forget_peak()
                sum((weight * 1.0).sum() for weight in weights).backward()
                optimizer.step()
            ratios.append((_peak() - before) / (size * parameters))
            del weights, optimizer
        return ratios

    def hidden(self, width, steps):
        """A training step of a small transformer, in ms: (without reduction, with it, reduction alone), and gradients' bytes."""
        torch, rm = self._torch, self._rm
        torch.manual_seed(0)
        batch = torch.randn(8, 32, width)

        def made():
            layer = torch.nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)
            model = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
            return model, torch.optim.SGD(model.parameters(), lr=1e-3)

        alone, alone_optimizer = made()
        model, optimizer = made()
        rm.broadcast_parameters(model.state_dict(), root_rank=0)
        optimizer = rm.DistributedOptimizer(optimizer, end_step=False, bucket_bytes=4 << 20)
        elements = sum(parameter.numel() for parameter in model.parameters())
        bucket = 1 << 20  # elements
        gradients = [torch.zeros(min(bucket, elements - at)) for at in range(0, elements, bucket)]

        def step(of, with_optimizer):
            with_optimizer.zero_grad()
            of(batch).square().mean().backward()
            with_optimizer.step()

        def reduce():
            for handle in [rm.allreduce_async_(g, name="alone.%d" % i, op=rm.Sum) for i, g in enumerate(gradients)]:
                rm.synchronize(handle)

        kinds = [lambda: step(alone, alone_optimizer), lambda: step(model, optimizer), reduce]
        taken = [[] for _ in kinds]
        for turn in range(steps + 2):
            for kind, call in enumerate(kinds):
                rm.barrier()
                begin = time.perf_counter()
                call()
                if turn >= 2:
                    taken[kind].append((time.perf_counter() - begin) * 1e3)
        return [statistics.median(times) for times in taken] + [4 * elements]


def _status(field):
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith(field + ":"))


def _forget_peak():
    """From now on _peak() is the most memory that is used; returns what is used now."""
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")
    return _status("VmRSS")


def _peak():
    return _status("VmHWM")


def main():
    import ringmaster.torch as rm
    import torch
    torch.set_num_threads(1)
    rm.init()
    measurements = Measurements(rm, torch)
    folder = os.environ["RM_BENCH"]
    with open(os.path.join(folder, "commands.%d" % rm.rank()), encoding="ascii") as commands, \
            open(os.path.join(folder, "results"), "w", encoding="ascii") as results:
        for line in commands:
            given = json.loads(line)
            what = given.pop("what")
            if what == "end":
                break
            found = getattr(measurements, what)(**given)
            if rm.rank() == 0:
                print(json.dumps(found), file=results, flush=True)
    rm.shutdown()


if __name__ == "__main__":
    main()
