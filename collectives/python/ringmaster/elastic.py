"""Elastic training, with Horovod's names: `run`, `State`, `ObjectState`, `ElasticSampler`.

A fault raises nothing: the operation in progress is finished among the survivors. What is left of
Horovod's mechanism is the re-entry of the training function after a change, and `in_place=True`
drops that too. docs/python.md says when a step ends and what joiners get.
"""

import copy
import functools
import random

from ringmaster import _core
from ringmaster.errors import HostsUpdatedInterrupt
from ringmaster.sampler import ElasticSampler

__all__ = ["ElasticSampler", "HostsUpdatedInterrupt", "ObjectState", "State", "run"]


class Steps:
    """Which call ends the step: DistributedOptimizer.step(), or state.commit() after it. One of
    them does, once.

    In a function that is entered again after changes (`elastic.run` without in_place) only commit()
    does, because only there the script says that its own counters are consistent.
    """
    commit_ends_step = False
    ended_by_optimizer = False

    @classmethod
    def optimizer_stepped(cls):
        if cls.commit_ends_step:
            return
        info = _core.end_step()
        cls.ended_by_optimizer = True
        _after_step(info)

    @classmethod
    def committed(cls):
        if cls.ended_by_optimizer and not cls.commit_ends_step:
            cls.ended_by_optimizer = False  # optimizer.step() has ended this step already
            return
        _after_step(_core.end_step())


_running = None  # the state of the training function that runs now


def _after_step(info):
    if _running is not None and info.view_changed:
        _running.on_view_changed()


class State:
    """What joiners get, and what commit() and restore() are about.

    Derive: save, restore, capture, install.
    """

    def __init__(self):
        self._reset_callbacks = []
        self._changed = False

    # ---- For derived classes

    def save(self):
        """Keeps a copy for restore()."""

    def restore(self):
        """Goes back to the last save()."""

    def capture(self):
        """Everything that a joiner needs, picklable."""
        return None

    def install(self, captured):
        """Becomes what capture() of another worker returned."""

    def prepare_commit(self):
        """Called before the step ends; collectives are allowed."""

    # ---- For scripts

    def register_reset_callbacks(self, callbacks):
        """Called after the world has changed, before training goes on."""
        self._reset_callbacks.extend(callbacks)

    def commit(self):
        """Ends the step (if optimizer.step() has not) and keeps a copy for restore().

        Raises HostsUpdatedInterrupt after a change where the training function is to be entered
        again.
        """
        self.prepare_commit()
        self.save()
        Steps.committed()
        self.check_host_updates()

    def check_host_updates(self):
        """Raises HostsUpdatedInterrupt if the world has changed and train() is to be entered again.
        """
        if self._changed:
            self._changed = False
            raise HostsUpdatedInterrupt()

    def sync(self):
        """All workers become what rank 0 is."""
        if _core.is_joining():
            _core.enter()
            return
        from ringmaster._objects import broadcast_object
        self.install(broadcast_object(self.capture(), 0, "ringmaster.state.sync"))

    # ---- For run

    def on_view_changed(self):
        if Steps.commit_ends_step:
            self._changed = True  # reset callbacks run when train() is entered again
        else:
            self.on_reset()

    def on_reset(self):
        for callback in self._reset_callbacks:
            callback()


class ObjectState(State):
    """Plain values as attributes: ObjectState(batch=0, epoch=0)."""

    def __init__(self, **values):
        super().__init__()
        self._names = sorted(values)
        for name, value in values.items():
            setattr(self, name, value)
        self._kept = None
        self.save()

    def values(self):
        return {name: getattr(self, name) for name in self._names}

    def save(self):
        self._kept = copy.deepcopy(self.values())

    def restore(self):
        for name, value in copy.deepcopy(self._kept).items():
            setattr(self, name, value)

    def capture(self):
        return {"values": self.values(), "random": random.getstate()}

    def install(self, captured):
        for name, value in captured["values"].items():
            setattr(self, name, value)
        random.setstate(captured["random"])
        self.save()


def run(function=None, *, in_place=False):
    """Decorates `train(state, ...)`. A joiner gets the state from the others before it enters.

    After a change of the world train() is entered again from its top, without rollback, as
    Horovod's scripts expect; with in_place=True it just goes on.
    """
    if function is None:
        return functools.partial(run, in_place=in_place)

    @functools.wraps(function)
    def wrapper(state, *args, **kwargs):
        global _running
        if not isinstance(state, State):
            raise ValueError("state: is a %s, must be a State (ObjectState, TorchState, ...)"
                             % type(state).__name__)
        _core.init()
        _core.register_state("elastic.state", state.capture, state.install)
        before, _running = (_running, Steps.commit_ends_step), state
        Steps.commit_ends_step, Steps.ended_by_optimizer = not in_place, False
        try:
            state.sync()
            while True:
                try:
                    return function(state, *args, **kwargs)
                except HostsUpdatedInterrupt:
                    # Nothing to send: the survivors are equal, and joiners got their copy at the
                    # commit that raised this.
                    state.on_reset()
        finally:
            _running, Steps.commit_ends_step = before

    return wrapper
