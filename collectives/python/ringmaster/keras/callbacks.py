"""Callbacks for model.fit(), as Horovod names them."""

import re

import numpy
import tensorflow as tf

from ringmaster import _core, _requests, arrays, elastic as _elastic
from ringmaster.keras.functions import run_without_xla, session
from ringmaster.process_sets import global_process_set
from ringmaster.reductions import Average
from ringmaster.tensorflow.elastic import variables_of
from ringmaster.tensorflow.functions import broadcast_variables
from ringmaster.tensorflow.optimizer import distributed_in
from ringmaster.tensorflow.reducing import identity

__all__ = ["BestModelCheckpoint", "BroadcastGlobalVariablesCallback",
           "LearningRateScheduleCallback", "LearningRateWarmupCallback", "MetricAverageCallback"]


class BroadcastGlobalVariablesCallback(tf.keras.callbacks.Callback):
    """Makes the weights of the model and of its optimizer those of the root, after the first batch
    (which makes the optimizer's). `device` is not used.

    local_variables: a list of those that stay each rank's own, such as the weights of the
    `local_layers` of a PartialDistributedOptimizer.

    Where Keras would let XLA compile the model it has it run without. It also ends a step
    (docs/python.md) with each batch, where the model has a DistributedOptimizer of all ranks and no
    function under elastic.run does.
    """

    def __init__(self, root_rank, device="", local_variables=None):
        super().__init__()
        self.root_rank = root_rank
        self.device = device
        self.broadcast_done = False
        self._local = {}  # by identity
        for variable in local_variables or ():
            self.register_local_var(variable)

    def register_local_var(self, var):
        """One more of `local_variables`."""
        self._local[identity(var)] = var

    def set_model(self, model):
        super().set_model(model)
        run_without_xla(model)

    def on_train_begin(self, logs=None):
        # All ranks begin anew, a joiner among them for the first time; or in place nobody does, and
        # a joiner must not wait for the others' first batch.
        self.broadcast_done = _elastic.has_in_place(self.model)

    def on_train_batch_end(self, batch, logs=None):
        if not self.broadcast_done:
            self.broadcast_done = True
            self._broadcast()
        optimizer = distributed_in(self.model.optimizer)
        if optimizer is not None and not _elastic.is_running() and \
                optimizer._ringmaster_reduction.is_of_all_ranks():
            _core.end_step()

    def _broadcast(self):
        eagerly = tf.executing_eagerly()
        # Without the seeds that Keras 3 counts among model.variables: ranks have their own.
        every = self.model.weights + variables_of(self.model.optimizer) if eagerly \
            else tf.compat.v1.global_variables()
        shared = [variable for variable in every if identity(variable) not in self._local]
        operation = broadcast_variables(shared, self.root_rank)
        if not eagerly:
            session().run(operation)


class MetricAverageCallback(tf.keras.callbacks.Callback):
    """Averages an epoch's metrics over the ranks, for the callbacks behind it: numbers, and vectors
    and such of them. All ranks must have the same ones. `device` is not used.
    """

    def __init__(self, device="", process_set=global_process_set):
        super().__init__()
        self.device = device
        self.process_set = process_set

    def on_epoch_end(self, epoch, logs=None):
        names = sorted(logs or {}, key=_numbers_by_value)
        if not names:
            return
        values = [numpy.asarray(logs[name], numpy.float64) for name in names]
        together = numpy.concatenate([value.ravel() for value in values])
        operation = _requests.full_name("metrics", "epoch", self.process_set)
        averages, = arrays.start_allreduces([together], [operation], Average,
                                            process_set=self.process_set).wait()
        parts = numpy.split(averages, numpy.cumsum([value.size for value in values])[:-1])
        for name, value, part in zip(names, values, parts):
            logs[name] = part.reshape(value.shape) if value.shape else part.item()


def _numbers_by_value(name):
    """For sorting: Keras numbers what it names by how much of it the process has made, and a joiner's
    auc and auc_1 are to stand in the order of the others' auc_9 and auc_10.
    """
    parts = re.split("([0-9]+)", name)  # every second one is a number
    return [int(part) if index % 2 else part for index, part in enumerate(parts)]


class LearningRateScheduleCallback(tf.keras.callbacks.Callback):
    """The learning rate is `initial_lr` times `multiplier`: a number that is taken once more with
    each epoch after `start_epoch`, or a function of the epoch.

    From `start_epoch` until before `end_epoch`. staircase: it changes with epochs only; else with
    each batch, for which the function gets fractions of an epoch, and `steps_per_epoch` must be
    known: from the argument or from fit(). momentum_correction: while the rate changes the
    optimizer's momentum changes with it, for optimizers whose momentum is a variable (Keras 2's
    legacy ones).
    """

    def __init__(self, initial_lr, multiplier, start_epoch=0, end_epoch=None, staircase=True,
                 momentum_correction=True, steps_per_epoch=None):
        super().__init__()
        if initial_lr is None:
            raise ValueError("initial_lr: is None, must be a number")
        self.initial_lr = initial_lr
        # Since Horovod 0.23; before, the power was that of the epoch.
        self.multiplier = multiplier if callable(multiplier) else \
            lambda epoch: multiplier**(epoch - start_epoch)
        self.start_epoch = start_epoch
        self.end_epoch = end_epoch
        self.staircase = staircase
        self.momentum_correction = momentum_correction
        self.steps_per_epoch = steps_per_epoch
        self.current_epoch = None
        self.restore_momentum = None

    def on_train_begin(self, logs=None):
        if self.staircase or self.steps_per_epoch:
            return
        self.steps_per_epoch = (self.params or {}).get("steps")
        if not self.steps_per_epoch:
            raise ValueError("steps_per_epoch: is not given, and fit() does not know it either")

    def on_epoch_begin(self, epoch, logs=None):
        self.current_epoch = epoch

    def on_train_batch_begin(self, batch, logs=None):
        epoch = self.current_epoch
        if epoch < self.start_epoch or self.end_epoch is not None and epoch >= self.end_epoch:
            return
        if not self.staircase:
            self._adjust(epoch + float(batch) / self.steps_per_epoch)
        elif batch == 0:
            self._adjust(epoch)

    def on_train_batch_end(self, batch, logs=None):
        if self.restore_momentum is not None:
            self.model.optimizer.momentum = self.restore_momentum
            self.restore_momentum = None

    def on_epoch_end(self, epoch, logs=None):
        if logs is not None:
            logs["lr"] = _rate(self.model.optimizer)

    def _adjust(self, epoch):
        optimizer = self.model.optimizer
        old, new = _rate(optimizer), self.initial_lr * self.multiplier(epoch)
        optimizer.learning_rate = new
        momentum = getattr(optimizer, "momentum", None)
        if self.momentum_correction and isinstance(momentum, tf.Variable) and old:
            self.restore_momentum = _number(momentum)
            optimizer.momentum = self.restore_momentum * new / old


class LearningRateWarmupCallback(LearningRateScheduleCallback):
    """From `initial_lr` / size up to `initial_lr`, within `warmup_epochs` epochs, batch by batch:
    so that `initial_lr` can be that of one worker times their number.

    verbose: more than 0: rank 0 says when it is done.
    """

    def __init__(self, initial_lr, warmup_epochs=5, momentum_correction=True, steps_per_epoch=None,
                 verbose=0):

        def multiplier(epoch):
            # As the step began: size() moves within it, and ranks would take different rates.
            size = _core.step_view().size
            done = epoch + 1.0 / self.steps_per_epoch  # so that an epoch ends at a round number
            return (done * (size - 1) / warmup_epochs + 1) / size

        super().__init__(initial_lr, multiplier, 0, warmup_epochs, False, momentum_correction,
                         steps_per_epoch)
        self.verbose = verbose

    def on_epoch_end(self, epoch, logs=None):
        super().on_epoch_end(epoch, logs)
        if self.verbose > 0 and epoch == self.end_epoch - 1 and _core.rank() == 0:
            print("Epoch %d: the learning rate has risen to %g." % (epoch + 1,
                                                                  _rate(self.model.optimizer)))


class BestModelCheckpoint(tf.keras.callbacks.ModelCheckpoint):
    """Rank 0 saves the model after each epoch whose `monitor` is the best so far.

    Put it behind MetricAverageCallback. `filepath`, which Horovod sets from outside, may be given,
    else it is best_model.keras or best_model.weights.h5; other arguments are Keras's, in the order
    of horovod.tensorflow.keras, or of horovod.keras, where `mode` is the third.
    """

    def __init__(self, monitor="val_loss", verbose=0, save_weights_only=False, mode="auto",
                 save_freq="epoch", filepath=None):
        if isinstance(save_weights_only, str):
            save_freq = save_freq if mode == "auto" else mode
            save_weights_only, mode = False, save_weights_only
        if filepath is None:
            filepath = "best_model.weights.h5" if save_weights_only else "best_model.keras"
        super().__init__(filepath=filepath, monitor=monitor, verbose=verbose, mode=mode,
                         save_freq=save_freq, save_best_only=True,
                         save_weights_only=save_weights_only)

    def on_train_batch_end(self, batch, logs=None):
        if _core.rank() == 0:
            super().on_train_batch_end(batch, logs)

    def on_epoch_end(self, epoch, logs=None):
        if _core.rank() == 0:
            super().on_epoch_end(epoch, logs)


def _rate(optimizer):
    return _number(optimizer.learning_rate)


def _number(variable):
    if tf.executing_eagerly():
        return float(tf.convert_to_tensor(variable))
    return float(tf.compat.v1.keras.backend.get_value(variable))
