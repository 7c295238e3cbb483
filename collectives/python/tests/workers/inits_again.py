"""init() after an agreed shutdown(): the sidecars are ending the job, and it says so."""

import torch

import ringmaster.torch as rm

rm.init()
rm.allreduce(torch.ones(1))
rm.shutdown()
assert not rm.is_initialized()
try:
    rm.init()
    raise AssertionError("a second life under a sidecar that ends the job")
except rm.HorovodInternalError as error:
    assert "all ranks have shut this job down" in str(error)
