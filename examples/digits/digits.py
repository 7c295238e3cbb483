"""What is learnt, without a word on how it is distributed: data, model, one step, accuracy.

train.py (many workers), the reference (one process) and check.py (the replay) share it. Everything
is in double precision: sums in another order differ by 1e-15 then, so that the replay can tell
rounding from a lost or doubled batch.
"""

import hashlib

import torch
from sklearn.datasets import load_digits

SEED = 7
TRAINING_SAMPLES = 1437
GLOBAL_BATCH = 64  # the same whatever the world's size, so that it learns the same
EPOCHS = 30
LEARNING_RATE = 0.1
MOMENTUM = 0.9


class Digits:
    """scikit-learn's 1,797 images of 8x8: 1,437 to learn from, 360 to judge by."""

    def __init__(self):
        data = load_digits()
        order = torch.randperm(len(data.target), generator=torch.Generator().manual_seed(SEED))
        images = torch.tensor(data.data, dtype=torch.float64)[order] / 16.0
        labels = torch.tensor(data.target, dtype=torch.int64)[order]
        self.images, self.labels = images[:TRAINING_SAMPLES], labels[:TRAINING_SAMPLES]
        self.test_images, self.test_labels = images[TRAINING_SAMPLES:], labels[TRAINING_SAMPLES:]

    def __len__(self):
        return TRAINING_SAMPLES


def make_model():
    """Two hidden layers; the same first parameters in every process."""
    with torch.random.fork_rng():
        torch.manual_seed(SEED)
        return torch.nn.Sequential(
            torch.nn.Linear(64, 96), torch.nn.ReLU(), torch.nn.Linear(96, 64), torch.nn.ReLU(),
            torch.nn.Linear(64, 10)).double()


def make_optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM)


def loss_of(model, data, indices):
    """The mean loss over `indices`; 0 for none, which still has a (zero) gradient."""
    index = torch.tensor(indices, dtype=torch.int64)
    losses = torch.nn.functional.cross_entropy(model(data.images[index]), data.labels[index],
                                               reduction="sum")
    return losses / max(1, len(indices))


def accuracy_of(model, data):
    with torch.no_grad():
        right = model(data.test_images).argmax(1) == data.test_labels
    return right.double().mean().item()


def hash_of(model):
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().numpy().tobytes())
    return digest.hexdigest()


def reference_accuracy(epochs=EPOCHS, data=None):
    """One process, plain PyTorch, its own order of samples."""
    data = data or Digits()
    model = make_model()
    optimizer = make_optimizer(model)
    generator = torch.Generator().manual_seed(SEED + 1)
    for _ in range(epochs):
        for batch in torch.randperm(len(data), generator=generator).split(GLOBAL_BATCH):
            optimizer.zero_grad()
            loss_of(model, data, batch.tolist()).backward()
            optimizer.step()
    return accuracy_of(model, data)
