from typing import Any, Callable, Iterable, Optional, Union

import tensorflow as tf

from ringmaster import ProcessSet

class BroadcastGlobalVariablesCallback(tf.keras.callbacks.Callback):
    def __init__(self, root_rank: int, device: str = ...,
                 local_variables: Optional[Iterable[Any]] = ...) -> None: ...
    def register_local_var(self, var: Any) -> None: ...

class MetricAverageCallback(tf.keras.callbacks.Callback):
    def __init__(self, device: str = ..., process_set: ProcessSet = ...) -> None: ...

class LearningRateScheduleCallback(tf.keras.callbacks.Callback):
    def __init__(self, initial_lr: float, multiplier: Union[float, Callable[[int], float]],
                 start_epoch: int = ..., end_epoch: Optional[int] = ..., staircase: bool = ...,
                 momentum_correction: bool = ..., steps_per_epoch: Optional[int] = ...) -> None: ...

class LearningRateWarmupCallback(LearningRateScheduleCallback):
    def __init__(self, initial_lr: float, warmup_epochs: float = ...,
                 momentum_correction: bool = ..., steps_per_epoch: Optional[int] = ...,
                 verbose: int = ...) -> None: ...

class BestModelCheckpoint(tf.keras.callbacks.ModelCheckpoint):
    def __init__(self, monitor: str = ..., verbose: int = ...,
                 save_weights_only: Union[bool, str] = ..., mode: str = ...,
                 save_freq: Union[str, int] = ..., filepath: Optional[str] = ...) -> None: ...
