"""The gradient of a step is the mean over all samples, however they are divided and bucketed."""

import functools
import itertools
import warnings

import torch

import ringmaster.torch as rm

rm.init()
rank, size = rm.rank(), rm.size()
torch.set_default_dtype(torch.float64)
X = torch.randn(30, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
Y = X.sum(1, keepdim=True)


def make(seed=5):
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    model.unused = torch.nn.Parameter(torch.ones(2))
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def loss_of(model, indices):
    return (model(X[indices]) - Y[indices]).pow(2).sum() / max(1, len(indices))


def same(model, reference):
    for mine, theirs in zip(model.parameters(), reference.parameters()):
        assert torch.allclose(mine, theirs, rtol=0, atol=1e-12), (mine, theirs)
    everyone = rm.allgather_object([p.detach() for p in model.parameters()])
    assert all(torch.equal(a, b) for other in everyone for a, b in zip(other, everyone[0]))


def test_an_epoch_equals_one_process(**options):
    reference, plain = make()
    model, optimizer = make()
    sampler = rm.elastic.ElasticSampler(len(X), seed=3)
    optimizer = rm.DistributedOptimizer(optimizer, model.named_parameters(), sampler=sampler,
                                        **options)
    for own in sampler.batches(7):  # 30 samples: the last batch has 2, so that some ranks have none
        optimizer.zero_grad()
        loss_of(model, own).backward()
        optimizer.step()
        plain.zero_grad()
        loss_of(reference, sampler.last_settled.counted).backward()
        plain.step()
        assert sampler.last_settled.own == own
    same(model, reference)
    assert sampler.epoch == 1


def shares(model):
    """The mean over the ranks' samples, for a process that has them all."""
    return sum(loss_of(model, [r, size + r]) for r in range(size)) / size


def test_what_is_unfrozen_or_added_later_is_reduced_too():
    for passes in (1, 2):
        models = [make()[0] for _ in range(2)]
        for model in models:
            model[0].weight.requires_grad_(False)
            model.extra = torch.nn.Parameter(torch.zeros(1))
        (model, mine), (reference, plain) = [
            (one, torch.optim.SGD([p for name, p in one.named_parameters() if name != "extra"],
                                  lr=0.1)) for one in models]
        mine = rm.DistributedOptimizer(mine, backward_passes_per_step=passes)
        for step in range(6):
            if step == 2:
                model[0].weight.requires_grad_(True)
                reference[0].weight.requires_grad_(True)
            if step == 3:
                mine.add_param_group({"params": [model.extra]})
                plain.add_param_group({"params": [reference.extra]})
            mine.zero_grad()
            plain.zero_grad()
            for _ in range(passes):
                (loss_of(model, [rank, size + rank]) + model.extra * rank).sum().backward()
                (shares(reference) + reference.extra * (size - 1) / 2).sum().backward()
            mine.step()
            plain.step()
        assert reference.extra.item() or size == 1
        same(model, reference)


def test_what_is_unfrozen_later_is_combined_by_adasum_too():
    model, _ = make()
    model[0].weight.requires_grad_(False)
    optimizer = rm.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), op=rm.Adasum)
    for step in range(3):
        model[0].weight.requires_grad_(step > 0)
        optimizer.zero_grad()
        loss_of(model, [rank, size + rank]).backward()
        optimizer.step()
    same(model, model)


def test_what_is_frozen_later_stays_as_it_is():
    model, _ = make()
    optimizer = rm.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.5))
    for step in range(4):
        if step == 2:
            model[0].weight.requires_grad_(False)
            model[0].weight.grad = None
            before = model[0].weight.detach().clone()
        optimizer.zero_grad(set_to_none=True)
        loss_of(model, [rank, size + rank]).backward()
        optimizer.step()
    assert torch.equal(model[0].weight, before), (model[0].weight, before)


def test_optimizers_of_the_same_parameters_can_follow_each_other():
    model, _ = make()
    reference, _ = make()
    pairs = [(rm.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=rate)),
              torch.optim.SGD(reference.parameters(), lr=rate)) for rate in (0.1, 0.2)]
    for mine, plain in pairs[::-1] + pairs:  # also an older one once more
        for _ in range(2):
            mine.zero_grad()
            loss_of(model, [rank, size + rank]).backward()
            mine.step()
            plain.zero_grad()
            shares(reference).backward()
            plain.step()
    same(model, reference)


def test_the_step_at_an_epochs_end_is_made_by_ranks_without_a_sample_too():
    model, optimizer = make()
    sampler = rm.elastic.ElasticSampler(25, seed=3)
    optimizer = rm.DistributedOptimizer(optimizer, sampler=sampler, backward_passes_per_step=2)
    for number, own in enumerate(sampler.batches(12)):  # the third batch has one sample
        if own:
            loss_of(model, own).backward()
        if number % 2:
            optimizer.step()
            optimizer.zero_grad()
    assert sampler.epoch == 1 and len(sampler.last_settled.counted) == 1
    everyone = rm.allgather_object([p.detach() for p in model.parameters()])
    assert all(torch.equal(a, b) for other in everyone for a, b in zip(other, everyone[0]))


def a_step_of_two_passes(model, passes, at_once, **options):
    """Of 9 samples in batches of 8. at_once: both shares are taken before the first pass."""
    sampler = rm.elastic.ElasticSampler(9, shuffle=False)
    optimizer = rm.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0),
                                        backward_passes_per_step=passes, sampler=sampler, **options)
    shares = iter(sampler.batches(8))
    for own in [next(shares), next(shares)] if at_once else itertools.islice(shares, 2):
        model.loss(own).backward()
    if passes == 2:
        optimizer.step()
        optimizer.zero_grad()
    assert next(shares, None) is None and sampler.epoch == 1  # with 3 passes the step is made here


class EachSamplesWeight(torch.nn.Module):
    """What a step takes from `weight` is each sample's part in it. `scale` learns what the loss
    counts: it has a gradient also of an empty share, of which the loss is not a number.
    """

    def __init__(self, learns=False):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(9))
        if learns:
            self.scale = torch.nn.Parameter(torch.zeros(1))
        self._learns = learns

    def loss(self, own):
        loss = (torch.eye(9)[own] @ self.weight).mean()
        return (loss * torch.exp(-self.scale) + self.scale).sum() if self._learns else loss


def test_each_pass_of_a_step_counts_by_its_own_shares():
    for passes, at_once, learns in itertools.product((2, 3), (False, True), (False, True)):
        mine, alone = EachSamplesWeight(learns), EachSamplesWeight(learns)
        a_step_of_two_passes(mine, passes, at_once)
        (alone.loss(list(range(8))) + alone.loss([8])).backward()
        torch.optim.SGD(alone.parameters(), lr=1.0).step()
        assert torch.allclose(alone.weight, torch.tensor([-0.125] * 8 + [-1.0])), alone.weight
        same(mine, alone)


def test_an_empty_share_adds_nothing_to_a_sum():
    model = EachSamplesWeight(learns=True)
    a_step_of_two_passes(model, 2, False, op=rm.Sum)
    assert not any(part.isnan().any() for part in model.parameters()), list(model.parameters())


def test_many_buckets():
    test_an_epoch_equals_one_process(bucket_bytes=40)


def test_without_a_sampler_ranks_count_equally():
    reference, plain = make()
    model, optimizer = make()
    optimizer = rm.DistributedOptimizer(optimizer, backward_passes_per_step=2)
    plain.zero_grad()
    for r in range(size):
        for part in (0, 1):
            (loss_of(reference, [2 * r + part]) / size).backward()
    plain.step()
    optimizer.zero_grad()
    for part in (0, 1):
        loss_of(model, [2 * rank + part]).backward()
    optimizer.synchronize()
    with optimizer.skip_synchronize():
        optimizer.step()
    same(model, reference)


def test_fp16_compression_is_near():
    reference, plain = make()
    model, optimizer = make()
    optimizer = rm.DistributedOptimizer(optimizer, compression=rm.Compression.fp16)
    loss_of(model, list(range(rank, 30, size))).backward()
    optimizer.step()
    loss_of(reference, list(range(30))).backward()
    plain.step()
    for mine, theirs in zip(model.parameters(), reference.parameters()):
        assert torch.allclose(mine, theirs, atol=0.05)


def test_ranks_that_have_joined_are_not_divided_by():
    model = torch.nn.Linear(1, 1, bias=False)
    model.weight.data.zero_()
    optimizer = rm.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0), end_step=False)
    if rank == size - 1:
        model(torch.ones(1, 1)).mean().backward()
        optimizer.step()
        assert model.weight.item() == -1.0, model.weight
        assert rm.allreduce(torch.ones(1)).item() == 1 / size
    assert rm.join() == size - 1


def test_wrong_use_is_said():
    model, plain = make()
    optimizer = rm.DistributedOptimizer(plain)
    assert isinstance(optimizer, torch.optim.SGD)
    loss_of(model, [0]).backward()
    try:
        optimizer.zero_grad()
        assert size == 1, "zero_grad with reductions in flight went through"
    except AssertionError as error:
        assert "optimizer.step()" in str(error)
    optimizer.synchronize()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        optimizer.step()
    assert any("skip_synchronize" in str(w.message) for w in seen)
    for names, says in (([("a", model[0].weight)], "no name"),
                        ([("a", p) for p in model.parameters()], "more than once")):
        try:
            rm.DistributedOptimizer(make()[1], names)
            raise RuntimeError("bad names went through")
        except ValueError as error:
            assert says in str(error)


def test_a_data_loader_may_draw_the_batches():
    class Squares(torch.utils.data.Dataset):
        def __len__(self):
            return 30

        def __getitem__(self, index):
            return X[index], Y[index], index

    model, plain = make()
    sampler = rm.elastic.ElasticSampler(Squares(), seed=4)
    optimizer = rm.DistributedOptimizer(plain, sampler=sampler)
    seen = []
    for x, y, index in torch.utils.data.DataLoader(Squares(), batch_sampler=sampler.batches(6)):
        optimizer.zero_grad()
        (model(x) - y).pow(2).mean().backward()
        optimizer.step()
        seen.extend(index.tolist())
    assert sorted(sum(rm.allgather_object(seen), [])) == list(range(30))


def test_after_a_wrong_use_the_samples_come_again():
    model, plain = make()
    sampler = rm.elastic.ElasticSampler(12, seed=4)
    optimizer = rm.DistributedOptimizer(plain, sampler=sampler)
    counted = []
    for number, own in enumerate(sampler.batches(6)):
        # The second time the ranks disagree about the length of what they reduce.
        contribution = sampler.contribution() + [0.0] * (rank + 1)
        if number == 1 and size > 1:
            sampler.contribution = lambda kept=contribution: kept
        optimizer.zero_grad()
        loss_of(model, own).backward()
        try:
            optimizer.step()
            counted += sampler.last_settled.counted
        except rm.HorovodInternalError:
            assert number == 1
            del sampler.contribution
    assert sorted(counted) == list(range(12))


def test_a_scheduler_works_on_it():
    model, plain = make()
    optimizer = rm.DistributedOptimizer(plain)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    loss_of(model, [0]).backward()
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] == 0.05


def test_a_scheduler_that_was_made_before_it_hides_no_step():
    for op in (rm.Average, rm.Adasum):
        model, plain = make()
        scheduler = torch.optim.lr_scheduler.StepLR(plain, 1, gamma=0.5)
        plain.zero_grad = functools.partial(plain.zero_grad, set_to_none=True)
        optimizer = rm.DistributedOptimizer(plain, op=op)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            for rate in (0.1, 0.05):
                assert optimizer.param_groups[0]["lr"] == rate
                loss_of(model, [rank]).backward()
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
        assert not seen, [str(warning.message) for warning in seen]
        same(model, model)
        optimizer.load_state_dict(optimizer.state_dict())  # makes new groups
        scheduler.step()
        assert optimizer.param_groups[0]["lr"] == 0.0125


def test_hooks_of_a_step_run_once_also_when_a_state_was_loaded():
    for op in (rm.Average, rm.Adasum):
        model, plain = make()
        optimizer = rm.DistributedOptimizer(plain, op=op)
        if not hasattr(optimizer, "register_step_post_hook"):  # Debian's PyTorch
            return
        optimizer.load_state_dict(optimizer.state_dict())
        steps = []
        optimizer.register_step_post_hook(lambda *_: steps.append(1))
        loss_of(model, [rank]).backward()
        optimizer.step()
        assert steps == [1], steps


before = rm.last_step().step if rm.last_step() else 0
for test in [value for name, value in sorted(globals().items()) if name.startswith("test_")]:
    test()
assert rm.last_step().step > before
rm.shutdown()
