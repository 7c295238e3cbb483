"""Elastic training with Keras: KerasState, and callbacks that keep and commit it while model.fit()
runs.
"""

import tensorflow as tf

from ringmaster.keras.functions import run_without_xla
from ringmaster.tensorflow.elastic import (ElasticSampler, HostsUpdatedInterrupt, ObjectState,
                                           State, TensorFlowKerasState, run, sharded_batches,
                                           sharded_indices)

__all__ = ["CommitStateCallback", "ElasticSampler", "HostsUpdatedInterrupt", "KerasState",
           "ObjectState", "State", "UpdateBatchStateCallback", "UpdateEpochStateCallback", "run",
           "sharded_batches", "sharded_indices"]


class KerasState(TensorFlowKerasState):
    """KerasState(model, optimizer=None, batch=0, epoch=0): see TensorFlowKerasState."""

    def __init__(self, model, optimizer=None, **values):
        super().__init__(model, optimizer, tf.compat.v1.keras.backend, **values)


class CommitStateCallback(tf.keras.callbacks.Callback):
    """Commits `state` every `batches_per_commit` batches, and after each epoch. Put it last, so
    that it commits what other callbacks have set.

    A commit ends the step; after a change of the world it raises HostsUpdatedInterrupt, through
    fit(), and elastic.run enters the training function again. Where Keras would let XLA compile the
    model it has it run without.
    """

    def __init__(self, state, batches_per_commit=1):
        super().__init__()
        self.state = state
        self.batches_per_commit = batches_per_commit
        self.batches_remaining = batches_per_commit

    def set_model(self, model):
        super().set_model(model)
        run_without_xla(model)

    def on_train_begin(self, logs=None):
        # Survivors and joiners begin at the same number.
        self.batches_remaining = self.batches_per_commit

    def on_train_batch_end(self, batch, logs=None):
        self.batches_remaining -= 1
        if self.batches_remaining == 0:
            self.batches_remaining = self.batches_per_commit
            self.state.commit()

    def on_epoch_end(self, epoch, logs=None):
        # A joiner that this commit lets in begins at this number, too.
        self.batches_remaining = self.batches_per_commit
        self.state.commit()


class UpdateBatchStateCallback(tf.keras.callbacks.Callback):
    """Keeps `state.batch`: the number of the last batch that is done, 0 after an epoch.

    An epoch that is entered again has as many steps less (as far as Keras reads its `params`).
    """

    def __init__(self, state):
        super().__init__()
        self.state = state
        self.steps_per_epoch = None

    def on_train_begin(self, logs=None):
        self.steps_per_epoch = None

    def on_epoch_begin(self, epoch, logs=None):
        steps = (self.params or {}).get("steps")
        if steps:
            self.steps_per_epoch = self.steps_per_epoch or steps
            self.params["steps"] = self.steps_per_epoch - self.state.batch

    def on_train_batch_end(self, batch, logs=None):
        self.state.batch = batch

    def on_epoch_end(self, epoch, logs=None):
        self.state.batch = 0


class UpdateEpochStateCallback(tf.keras.callbacks.Callback):
    """Keeps `state.epoch`: how many epochs are done, also where fit() counts from 0 again."""

    def __init__(self, state):
        super().__init__()
        self.state = state
        self.initial_epoch = state.epoch

    def on_train_begin(self, logs=None):
        self.initial_epoch = self.state.epoch

    def on_epoch_end(self, epoch, logs=None):
        self.state.epoch = self.initial_epoch + epoch + 1
