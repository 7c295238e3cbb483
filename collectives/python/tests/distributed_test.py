"""torch.distributed's backend ringmaster, with real worker processes under a fake sidecar."""

import pytest


@pytest.mark.parametrize("size", [2, 4])
def test_EveryCollectiveOfTorchDistributed(passes, size):
    passes("torch_distributed.py", size, SIZE=str(size))


@pytest.mark.parametrize("size", [1, 3])
def test_DistributedDataParallelGivesWhatOneProcessGives(passes, size):
    passes("ddp.py", size)
