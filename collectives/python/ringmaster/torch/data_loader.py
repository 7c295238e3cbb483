"""ElasticDataLoader: torch's DataLoader with workers that read ahead, where the world changes."""

import torch

from ringmaster.sampler_batches import AheadBatches, Batches


class ElasticDataLoader(torch.utils.data.DataLoader):
    """torch.utils.data.DataLoader for the shares of an ElasticSampler, with all its options.

        loader = ElasticDataLoader(dataset, batch_sampler=sampler.batches(64), num_workers=2)

    What its workers have read ahead is dropped and read anew when the world has changed, or when
    samples of a dead worker came back; `persistent_workers=True` spares the restart of the workers
    then. Each iteration is (the rest of) one epoch. A rank without a share of a batch gets one
    whose tensors have no rows. ValueError: `batch_sampler` is not what batches() returns.
    """

    def __init__(self, dataset, *, batch_sampler, **options):
        if not isinstance(batch_sampler, Batches):
            raise ValueError("batch_sampler: is a %s, must be an ElasticSampler's batches(n)"
                             % type(batch_sampler).__name__)
        super().__init__(dataset, batch_sampler=AheadBatches(batch_sampler), **options)

    def __iter__(self):
        return self.batch_sampler.follow(super().__iter__, without_rows)


def without_rows(batch):
    """A batch like `batch` without its samples, as far as default_collate() makes them."""
    if isinstance(batch, torch.Tensor):
        return batch[:0] if batch.dim() else batch
    if isinstance(batch, dict):
        return {key: without_rows(value) for key, value in batch.items()}
    if isinstance(batch, (list, tuple)):
        if batch and isinstance(batch[0], (str, bytes)):
            return batch[:0]
        parts = [without_rows(value) for value in batch]
        return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)
    return batch
