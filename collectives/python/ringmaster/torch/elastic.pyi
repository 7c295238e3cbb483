from typing import Any, Optional

import torch

from ringmaster.elastic import (ElasticSampler as ElasticSampler,
                                HostsUpdatedInterrupt as HostsUpdatedInterrupt,
                                ObjectState as ObjectState, State as State, run as run)

from ringmaster.torch.data_loader import ElasticDataLoader as ElasticDataLoader

class TorchState(ObjectState):
    def __init__(self, model: Optional[torch.nn.Module] = ...,
                 optimizer: Optional[torch.optim.Optimizer] = ..., **others: Any) -> None: ...
