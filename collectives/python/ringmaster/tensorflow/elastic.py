"""Elastic training with TensorFlow: everything of ringmaster.elastic, TensorFlowState and
TensorFlowKerasState.
"""

import functools
import sys

import numpy
import tensorflow as tf

from ringmaster import elastic as _elastic
from ringmaster.elastic import ElasticSampler, HostsUpdatedInterrupt, ObjectState, State
from ringmaster.tensorflow.calling import error_behind
from ringmaster.tensorflow.samples import sharded_batches, sharded_indices

__all__ = ["ElasticSampler", "HostsUpdatedInterrupt", "ObjectState", "State",
           "TensorFlowKerasState", "TensorFlowState", "run", "sharded_batches", "sharded_indices"]


def run(function=None, *, in_place=False):
    """ringmaster.elastic.run(), for functions whose collectives are in TensorFlow's graphs, too.

    TensorFlow makes an error of its own of what is raised inside a graph; `train` and whoever calls
    it sees what it was: a HorovodInternalError or a WorkerDroppedError.
    """
    if function is None:
        return functools.partial(run, in_place=in_place)

    @functools.wraps(function)
    def unwrapped(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except tf.errors.OpError as error:
            inner = error_behind(error)
            if inner is None:
                raise
            raise inner from error

    return _elastic.run(unwrapped, in_place=in_place)


def _exit_as_meant(kind, error, traceback, otherwise=sys.excepthook):
    """A process that a SystemExit ends has that one's exit code, also if TensorFlow has made another
    error of it: one that was dropped is started again, and one whose job has ended without it has
    left. Neither counts as a failure.
    """
    inner = error_behind(error) if isinstance(error, tf.errors.OpError) else None
    if isinstance(inner, SystemExit):
        print("ringmaster: %s" % inner, file=sys.stderr)
        raise inner
    otherwise(kind, error, traceback)


sys.excepthook = _exit_as_meant


class _VariablesState(ObjectState):
    """Values of variables beside plain ones. A derived class says how they are read and written."""

    def __init__(self, **values):
        super().__init__(**values)  # saves

    def save(self):
        super().save()
        self._kept_arrays = self._read() if self.keeps_copy else None

    def restore(self):
        super().restore()
        self._write(self._kept_arrays)

    def capture(self):
        return dict(super().capture(), arrays=self._read())

    def install(self, captured):
        self._write(captured["arrays"])
        super().install(captured)

    def random_states(self):
        return dict(super().random_states(), numpy=numpy.random.get_state())

    def set_random_states(self, states):
        super().set_random_states(states)
        if "numpy" in states:
            numpy.random.set_state(states["numpy"])


class TensorFlowState(_VariablesState):
    """TensorFlowState(variables=[...], session=None, batch=0): variables, and plain values as
    attributes.

    variables: tf.Variables; by default the global variables of the graph of tf.compat.v1.
    session: in such a graph, by default the default session. They must be initialised.
    """

    def __init__(self, variables=None, session=None, **values):
        self.variables = tf.compat.v1.global_variables() if variables is None else list(variables)
        self.session = session or tf.compat.v1.get_default_session()
        if self.session is None and not tf.executing_eagerly():
            raise ValueError("session: is None, and there is no default session")
        super().__init__(**values)

    def _read(self):
        return {"variables": _values_of(self.variables, self.session)}

    def _write(self, arrays):
        _assign(self.variables, arrays["variables"], self.session)


class TensorFlowKerasState(_VariablesState):
    """TensorFlowKerasState(model, optimizer=None, batch=0, epoch=0): a Keras model, which must be
    built (ValueError), its optimizer, by default the one it was compiled with, and plain values as
    attributes. `backend` is Keras's, for graphs of tf.compat.v1.
    """

    def __init__(self, model, optimizer=None, backend=None, **values):
        if not hasattr(model, "weights"):
            raise ValueError("model: is a %s, must be a Keras model" % type(model).__name__)
        if not getattr(model, "built", True):
            raise ValueError("model: is not built; call model.build(input_shape) before")
        self.model = model
        self.optimizer = optimizer or getattr(model, "optimizer", None)
        self.backend = backend
        super().__init__(**values)

    def _session(self):
        return None if tf.executing_eagerly() else self.backend.get_session()

    def _read(self):
        session = self._session()
        return {"model": _values_of(self.model.weights, session),
                "optimizer": _values_of(variables_of(self.optimizer), session)}

    def _write(self, arrays):
        session = self._session()
        _assign(self.model.weights, arrays["model"], session)
        kept = arrays["optimizer"]
        if len(kept) > len(variables_of(self.optimizer)):
            _build(self.optimizer, self.model)
        # An optimizer that has not been used has fewer: then the others begin as they are made.
        _assign(variables_of(self.optimizer)[:len(kept)], kept, session)


def variables_of(optimizer):
    """An optimizer's own variables: a property in Keras 3, a method in older ones. Before them
    those of a loss's scale, which Keras 2 keeps apart and which are there from the beginning.
    """
    if optimizer is None:
        return []
    variables = optimizer.variables
    if callable(variables):
        variables = variables()
    scale = getattr(optimizer, "_loss_scale", None)
    return [getattr(scale, name) for name in ("current_loss_scale", "counter")
            if hasattr(scale, name)] + list(variables)


def _build(optimizer, model):
    if hasattr(optimizer, "_create_all_weights"):  # Keras 2's legacy ones
        optimizer._create_all_weights(model.trainable_variables)
    else:
        optimizer.build(model.trainable_variables)


def _values_of(variables, session):
    if session is not None:
        return session.run(list(variables)) if variables else []
    return [numpy.array(tf.convert_to_tensor(variable).numpy()) for variable in variables]


def _assign(variables, values, session):
    if len(variables) != len(values):
        raise ValueError("the state has %d variables here and %d elsewhere: all workers must run "
                         "the same script" % (len(variables), len(values)))
    for variable, value in zip(variables, values):
        if session is None:
            variable.assign(value)
        else:
            variable.load(value, session)
