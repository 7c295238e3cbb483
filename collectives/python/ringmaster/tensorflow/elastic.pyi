from typing import Any, Callable, Iterable, Optional

import tensorflow as tf

from ringmaster.elastic import (ElasticSampler as ElasticSampler,
                                HostsUpdatedInterrupt as HostsUpdatedInterrupt,
                                ObjectState as ObjectState, State as State, run as run)

def sharded_batches(sampler: ElasticSampler, global_batch: int, read: Callable[[tf.Tensor], Any],
                    ahead: int = ...) -> tf.data.Dataset: ...
def sharded_indices(sampler: ElasticSampler, global_batch: int) -> tf.data.Dataset: ...

class TensorFlowState(ObjectState):
    variables: Any
    session: Any
    def __init__(self, variables: Optional[Iterable[tf.Variable]] = ..., session: Any = ...,
                 **values: Any) -> None: ...

class TensorFlowKerasState(ObjectState):
    model: Any
    optimizer: Any
    backend: Any
    def __init__(self, model: Any, optimizer: Any = ..., backend: Any = ...,
                 **values: Any) -> None: ...
