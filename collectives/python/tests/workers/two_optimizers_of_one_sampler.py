"""Two models with an optimizer each get the same gradients of the same samples, whether they are
reduced together or in turns, and in each batch: the last one has a share for one rank alone.
"""

import torch

import ringmaster.torch as rm

rm.init()


def two(passes, samples):
    models = [torch.nn.Linear(1, 1, bias=False) for _ in range(2)]
    optimizers = [rm.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0),
                                          backward_passes_per_step=passes) for model in models]
    sampler = rm.elastic.ElasticSampler(samples, shuffle=False)
    rm.elastic.TorchState(first=optimizers[0], second=optimizers[1], sampler=sampler)
    return models, optimizers, sampler


def values(indices):
    return torch.tensor([float(index) for index in indices]).reshape(-1, 1)


def gradients(models):
    return [model.weight.grad.item() for model in models]


for in_turns in (False, True):
    models, optimizers, sampler = two(1, 9)
    found = []
    for indices in sampler.batches(4):
        if in_turns:
            for model, optimizer in zip(models, optimizers):
                optimizer.zero_grad()
                model(values(indices)).mean().backward()
                optimizer.step()
        else:
            for optimizer in optimizers:
                optimizer.zero_grad()
            sum(model(values(indices)).mean() for model in models).backward()
            for optimizer in optimizers:
                optimizer.step()
        found.append(gradients(models))
    assert found == [[1.5, 1.5], [5.5, 5.5], [8.0, 8.0]], (in_turns, found)

# The third batch of an epoch is a step of its own.
models, optimizers, sampler = two(2, 30)
for epoch in range(2):
    for number, indices in enumerate(sampler.batches(10)):
        sum(model(values(indices) * 0 + 1).mean() for model in models).backward()
        if number % 2:
            for optimizer in optimizers:
                optimizer.step()
            assert gradients(models) == [2.0, 2.0], gradients(models)
            for optimizer in optimizers:
                optimizer.zero_grad()
assert sampler.epoch == 2 and sampler.done == 30

# Back to an earlier state, of all ranks, with gradients under way.
models, optimizers, _ = two(1, 9)
saved = optimizers[0].state_dict()
models[0](torch.ones(1, 1)).sum().backward()
optimizers[0].load_state_dict(saved)
optimizers[0].zero_grad()
models[0](torch.full((1, 1), 3.0)).sum().backward()
optimizers[0].step()
assert models[0].weight.grad.item() == 3.0


class Clipped(rm.Compression.none):
    """What it does to numbers is the script's affair."""

    @staticmethod
    def compress(tensor):
        limit = tensor.abs().max().clamp(max=0.5)
        return tensor.clamp(-limit, limit).reshape(1, -1), tensor.shape

    @staticmethod
    def decompress(tensor, shape):
        return tensor.reshape(shape)


model = torch.nn.Linear(2, 1, bias=False)
optimizer = rm.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0),
                                    compression=Clipped)
before = model.weight.detach().clone()
model(torch.tensor([[0.25, 2.0]])).sum().backward()
optimizer.step()
assert torch.allclose(before - model.weight, torch.tensor([[0.25, 0.5]])), before - model.weight
rm.shutdown()
