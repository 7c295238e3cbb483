from typing import Any

import tensorflow as tf

from ringmaster.elastic import (ElasticSampler as ElasticSampler,
                                HostsUpdatedInterrupt as HostsUpdatedInterrupt,
                                ObjectState as ObjectState, State as State, run as run)
from ringmaster.tensorflow.elastic import (TensorFlowKerasState as TensorFlowKerasState,
                                           sharded_batches as sharded_batches,
                                           sharded_indices as sharded_indices)

class KerasState(TensorFlowKerasState):
    def __init__(self, model: Any, optimizer: Any = ..., **values: Any) -> None: ...

class CommitStateCallback(tf.keras.callbacks.Callback):
    def __init__(self, state: State, batches_per_commit: int = ...) -> None: ...

class UpdateBatchStateCallback(tf.keras.callbacks.Callback):
    def __init__(self, state: State) -> None: ...

class UpdateEpochStateCallback(tf.keras.callbacks.Callback):
    def __init__(self, state: State) -> None: ...
