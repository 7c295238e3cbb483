from typing import Optional, TypeVar

from ringmaster.errors import HostsUpdatedInterrupt
from ringmaster.sampler import ElasticSampler

T = TypeVar("T")

class WorldChangedError(HostsUpdatedInterrupt): ...

def exact_mean(model: T, sampler: Optional[ElasticSampler] = ...,
               backward_passes_per_step: int = ...) -> T: ...
