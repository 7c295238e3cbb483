"""DistributedOptimizer with each of Horovod's options: the parameters equal those of one process
that has the gradients of all ranks.
"""

import copy
import inspect
import pickle
import warnings

import torch

import ringmaster.torch as rm

rm.init()
rank, size = rm.rank(), rm.size()
torch.set_default_dtype(torch.float64)


class Model(torch.nn.Module):

    def __init__(self, sparse=False):
        super().__init__()
        torch.manual_seed(3)
        self.embedding = torch.nn.Embedding(10, 4, sparse=sparse)
        self.other = torch.nn.Embedding(6, 4, sparse=sparse)
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(),
                                          torch.nn.Linear(5, 1))
        self.layers[0].bias.requires_grad_(False)

    def loss(self, of, step):
        words = torch.tensor([of, of + step, 9])
        features = self.embedding(words) + self.other(words % 6)
        return self.layers(features).pow(2).mean() * (of + 1)


def train(model, optimizer, loss, steps=3):
    for step in range(steps):
        optimizer.zero_grad()
        loss(model, step)
        optimizer.step()


def own(model, step):
    model.loss(rank, step).backward()


def mean_of(ranks):

    def loss(model, step):
        for of in ranks:
            (model.loss(of, step) / len(ranks)).backward()

    return loss


def same(model, reference):
    for (name, mine), theirs in zip(model.named_parameters(), reference.parameters()):
        assert torch.allclose(mine, theirs, rtol=0, atol=1e-12), (name, mine, theirs)


def check(loss=own, expected=mean_of(range(size)), sparse=False, steps=3, **options):
    reference, model = Model(), Model(sparse)
    train(reference, torch.optim.SGD(reference.parameters(), lr=0.1), expected, steps)
    if callable(options.get("groups")):
        options["groups"] = options["groups"](model)
    optimizer = rm.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1),
                                        named_parameters=model.named_parameters(), **options)
    train(model, optimizer, loss, steps)
    same(model, reference)
    return model, optimizer


def test_arguments_stand_in_horovods_order():
    names = list(inspect.signature(rm.DistributedOptimizer).parameters)
    assert names[:10] == ["optimizer", "named_parameters", "compression",
                          "backward_passes_per_step", "op", "gradient_predivide_factor",
                          "num_groups", "groups", "sparse_as_dense", "process_set"]


def test_groups():
    for groups in (0, 1, 2, 100, [], lambda m: [list(m.layers.parameters())],
                   lambda m: [[m.embedding.weight, m.layers[2].bias], [m.other.weight]]):
        check(groups=groups)
    _, optimizer = check(groups=2)
    assert [len(bucket.parameters) for bucket in optimizer._buckets] == [3, 2]
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        _, optimizer = check(num_groups=5)
    assert len(optimizer._buckets) == 5
    assert any("num_groups" in str(warning.message) for warning in seen)
    model = Model()
    plain = torch.optim.SGD(model.parameters(), lr=1)
    weight = model.other.weight
    for groups, says in ((-1, "groups: is -1"), ("all", "groups: is 'all'"), ([3], "list of lists"),
                         ([[3]], "no tensors"), ([[weight], [weight]], "twice"),
                         ([[torch.ones(1, requires_grad=True)]], "not the optimizer's")):
        refused(says, plain, groups=groups)


def refused(says, *arguments, **options):
    try:
        rm.DistributedOptimizer(*arguments, **options)
    except ValueError as error:
        assert says in str(error), (says, str(error))
        return
    raise AssertionError("%s was expected" % says)


def test_gradients_divided_before_they_are_added():
    for factor in (2.0, float(size)):
        check(gradient_predivide_factor=factor)
    # Without it the sum of the halves would be infinite.
    weight = torch.nn.Parameter(torch.zeros(2))
    optimizer = rm.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0),
                                        compression=rm.Compression.fp16,
                                        gradient_predivide_factor=float(size))
    (weight * 60000.0).sum().backward()
    optimizer.step()
    assert torch.allclose(weight.detach(), torch.full((2,), -60000.0), rtol=1e-3), weight
    plain = torch.optim.SGD([weight], lr=1.0)
    refused("must be 1.0 unless", plain, gradient_predivide_factor=2.0, op=rm.Sum)
    refused("gradient_predivide_factor: is 0", plain, gradient_predivide_factor=0)


def test_sparse_gradients():
    model, optimizer = check(sparse=True)
    assert model.embedding.weight.grad.is_sparse
    assert sum(bucket.is_sparse for bucket in optimizer._buckets) == 2
    model, _ = check(sparse=True, sparse_as_dense=True)
    assert not model.embedding.weight.grad.is_sparse
    check(sparse=True, gradient_predivide_factor=2.0, bucket_bytes=8)

    def in_two_passes(model, step):
        for _ in range(2):
            (model.loss(rank, step) / 2).backward()

    check(in_two_passes, sparse=True, backward_passes_per_step=2)

    def not_on_the_last_rank(model, step):  # from the second step on it has no gradient at all
        if step == 0 or rank < size - 1:
            own(model, step)

    def expected(model, step):
        for of in range(size if step == 0 else size - 1):
            (model.loss(of, step) / size).backward()

    check(not_on_the_last_rank, expected, sparse=True)


def test_a_sparse_gradient_that_only_some_ranks_have_at_first():
    def on_some(first):
        def loss(model, step):
            if step >= 2 or rank in first[step]:
                own(model, step)

        def expected(model, step):
            for of in range(size) if step >= 2 else first[step]:
                (model.loss(of, step) / size).backward()

        return loss, expected

    for first in ([0], [size - 1]), (range(1, size), range(size)):
        for bucket_bytes in (8, 1 << 20):
            loss, expected = on_some(first)
            _, optimizer = check(loss, expected, sparse=True, bucket_bytes=bucket_bytes)
            assert sum(bucket.is_sparse for bucket in optimizer._buckets) == 2


def test_ranks_may_have_the_first_sparse_gradients_of_different_parameters():

    class LargestFirst(rm.Compression.none):  # a script's own, which can't do without numbers

        @staticmethod
        def compress(tensor):
            return tensor / tensor.abs().max().clamp(min=1.0), tensor.abs().max().clamp(min=1.0)

        @staticmethod
        def decompress(tensor, largest):
            return tensor * largest

    for compression in rm.Compression.none, LargestFirst:
        tables = [torch.nn.Embedding(4, 2, sparse=True) for _ in range(2)]
        for table in tables:
            torch.nn.init.zeros_(table.weight)
        optimizer = rm.DistributedOptimizer(
            torch.optim.SGD([table.weight for table in tables], lr=float(size)),
            compression=compression)
        for _ in range(2):
            optimizer.zero_grad()
            tables[rank % 2](torch.tensor([1])).sum().backward()
            optimizer.step()
        for number, table in enumerate(tables):
            expected = torch.zeros(4, 2)
            expected[1] = -2.0 * len([r for r in range(size) if r % 2 == number])
            assert torch.equal(table.weight.detach(), expected), (number, table.weight)


def test_a_model_may_be_converted_after_its_optimizer_was_made():
    weight = torch.nn.Parameter(torch.zeros(1, dtype=torch.float32))
    optimizer = rm.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0))
    weight.data = weight.data.double()
    (weight * (1 + 2.0**-40)).sum().backward()
    optimizer.step()
    assert weight.item() == -(1 + 2.0**-40), weight


def test_what_the_script_changes_before_the_step_is_replaced_and_it_hears_so():
    weight = torch.nn.Parameter(torch.zeros(2))
    optimizer = rm.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0))
    for _ in range(2):
        optimizer.zero_grad()
        (weight * 8.0).sum().backward()
        torch.nn.utils.clip_grad_norm_([weight], 1e-3)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            optimizer.step()
        heard = [str(warning.message) for warning in told if "skip_synchronize" in str(warning.message)]
        assert len(heard) == (1 if weight[0] == -8.0 else 0), heard  # once
    assert torch.equal(weight.detach(), torch.full((2,), -16.0))
    optimizer.zero_grad()
    (weight * 8.0).sum().backward()
    optimizer.synchronize()
    weight.grad.mul_(0.5)
    with optimizer.skip_synchronize():
        optimizer.step()
    assert torch.equal(weight.detach(), torch.full((2,), -20.0))


def test_an_optimizer_is_wrapped_once_and_not_copied():
    optimizer = rm.DistributedOptimizer(torch.optim.SGD([torch.nn.Parameter(torch.zeros(2))], lr=1))
    refused("is a DistributedOptimizer already", optimizer)
    for copies in (copy.deepcopy, copy.copy, pickle.dumps):
        try:
            copies(optimizer)
        except TypeError as error:
            assert "state_dict()" in str(error)
        else:
            raise AssertionError(copies)


def test_backward_passes_can_change():
    model, optimizer = check()
    optimizer.set_backward_passes_per_step(2)
    reference = Model()
    reference.load_state_dict(model.state_dict())
    plain = torch.optim.SGD(reference.parameters(), lr=0.1)
    optimizer.zero_grad()
    for step in (4, 5):
        own(model, step)
        mean_of(range(size))(reference, step)
    optimizer.step()
    plain.step()
    same(model, reference)


def test_a_process_set_trains_its_own_model():
    mine, others = rm.add_process_set([0, 1]), [r for r in range(2, size)]
    before = rm.last_step().step if rm.last_step() else 0
    expected = mean_of([0, 1]) if rank < 2 else own
    _, optimizer = check(expected=expected, process_set=mine, groups=2)
    assert bool(optimizer._buckets) == mine.included() == (rank not in others)
    # Ranks outside may have other numbers of steps, so by default step() ends none.
    assert (rm.last_step().step if rm.last_step() else 0) == before
    check(expected=expected, process_set=mine, end_step=True, steps=2)
    assert rm.last_step().step == before + 2
    model, sampler = Model(), rm.elastic.ElasticSampler(10)
    plain = torch.optim.SGD(model.parameters(), lr=1)
    refused("process_set must be", plain, sampler=sampler, process_set=mine)
    refused("process_set: is a list", plain, process_set=[0, 1])
    rm.remove_process_set(mine)
    refused("not added", plain, process_set=mine)


def test_wrong_arguments_are_named():
    model = Model()
    plain = torch.optim.SGD(model.parameters(), lr=1)
    refused("optimizer: is a Model", model)
    refused("named_parameters: must be pairs", plain, model.parameters())
    refused("backward_passes_per_step: is 0", plain, backward_passes_per_step=0)
    refused("must be Average, Sum or Adasum", plain, op=rm.Max)
    refused("LBFGS", torch.optim.LBFGS(model.parameters()))


for test in [value for name, value in sorted(globals().items()) if name.startswith("test_")]:
    test()
rm.shutdown()
