"""Elastic training, with Horovod's names: `run`, `State`, `ObjectState`, `ElasticSampler`.

A fault raises nothing: the operation in progress is finished among the survivors. What is left of
Horovod's mechanism is the re-entry of the training function after a change, and `in_place=True`
drops that too. docs/python.md says when a step ends and what joiners get.
"""

import copy
import functools
import hashlib
import pickle
import random
import sys
import warnings
import weakref

from ringmaster import _core
from ringmaster._objects import (allgather_made, allgather_object, broadcast_made,
                                 broadcast_object)
from ringmaster.errors import HostsUpdatedInterrupt, RootLostError, WorkerDroppedError
from ringmaster.sampler import ElasticSampler

__all__ = ["ElasticSampler", "HostsUpdatedInterrupt", "ObjectState", "State", "run"]


class Ender:
    """A DistributedOptimizer whose step() may end a step."""

    def __init__(self):
        self.takes_turns = True
        self.stepped = False  # since the last step ended


class Steps:
    """Which call ends the step: DistributedOptimizer.step(), or state.commit() after it. One of
    them does, once.

    In a function that is entered again after changes (`elastic.run` without in_place) only commit()
    does, because only there the script says that its own counters are consistent. Of several
    optimizers (a GAN's) the last one to step does: else a joiner would begin before the first
    while the others go on after it.
    """
    commit_ends_step = False
    ended_by_optimizer = False
    _enders = []
    _newest_stepped = False  # some optimizer has, since the newest one was made
    _unended = 0  # steps of optimizers since the last step ended

    @classmethod
    def new_ender(cls):
        """Those that are made with no step between them take turns, and whoever steps later on.

        So an earlier phase's don't. This follows from what the script does: it is the same on all
        ranks, which the garbage collector is not.
        """
        if cls._newest_stepped:
            for ender in cls._enders:
                ender.takes_turns = False
        cls._newest_stepped = False
        cls._enders.append(Ender())
        return cls._enders[-1]

    @classmethod
    def optimizer_stepped(cls, ender):
        if cls.commit_ends_step:
            return
        ender.takes_turns = ender.stepped = cls._newest_stepped = True
        cls._unended += 1
        if not all(other.stepped for other in cls._enders if other.takes_turns):
            return cls._warn_if_none_ends()
        cls.begin()
        cls.ended_by_optimizer = True
        _core.end_step_now()

    @classmethod
    def _warn_if_none_ends(cls):
        if cls._unended == 1000:
            warnings.warn("1000 optimizer steps and no end of a step, because a "
                          "DistributedOptimizer never steps: nobody can join or leave. Give it "
                          "end_step=False", stacklevel=4)

    @classmethod
    def begin(cls):
        """All optimizers have the step before them."""
        cls._unended = 0
        cls.ended_by_optimizer = False
        for ender in cls._enders:
            ender.stepped = False

    @classmethod
    def committed(cls):
        if cls.ended_by_optimizer and not cls.commit_ends_step:
            cls.ended_by_optimizer = False  # optimizer.step() has ended this step already
            return
        cls.begin()
        _core.end_step_now()


_running = None  # the state of the training function that runs now


def is_running():
    """Whether a training function under run() is under way."""
    return _running is not None


@_core.before_end_step
def _refuse_if_commit_does():
    if Steps.commit_ends_step:
        raise RuntimeError(
            "end_step(): in a function under elastic.run without in_place=True the step ends in "
            "state.commit() alone: it enters the function again after a change, as who joins does")


@_core.after_end_step
def _after_step(info):
    if _running is None or not info.view_changed:
        return
    if info.state_synced and runs_in_place():  # elsewhere the function is entered again
        _begin_sums_anew()
    _running.on_view_changed()


@_core.on_change_missed
def _after_join():
    """The others have entered the training function again meanwhile, and come to the same join."""
    if _running is not None:
        _running.on_reset()


_on_dropped = []  # weak references to methods


def on_dropped(method):
    """Calls it when this worker was dropped, before it gets the others' state."""
    _on_dropped.append(weakref.WeakMethod(method))


_entering = []


def on_entering(callback):
    """Calls it whenever a training function is about to be entered, the first time and again."""
    _entering.append(callback)
    return callback


_adding_up = []


def on_begin_sums(callback):
    """Calls it on all ranks when what they have added up since a step began is void, because a
    joiner has nothing of it: a training function is about to be entered, or one that runs in place
    goes on with a joiner.
    """
    _adding_up.append(callback)
    return callback


@on_entering
def _begin_sums_anew():
    for callback in _adding_up:
        callback()


_on_run = []


def on_run(mark):
    """Calls mark() when run() begins, and what it returned whenever the training function is to be
    entered again.
    """
    _on_run.append(mark)
    return mark


def runs_in_place():
    """Whether a training function runs that is entered once, however the world changes."""
    return _running is not None and not Steps.commit_ends_step


def has_in_place(model):
    """Whether such a function runs and its state has this model: all ranks have the same then, a
    joiner from its beginning.
    """
    return runs_in_place() and getattr(_running, "model", None) is model


def makes_anew():
    """Whether what is made now is made again by all workers after each change, by joiners as well:
    a training function runs that is entered again.
    """
    return _running is not None and Steps.commit_ends_step


_entry = 0


def entry():
    """A number that rises whenever a training function is to be entered again."""
    return _entry


def _enter_again():
    for method in [reference() for reference in _on_dropped]:
        if method is not None:
            method()
    Steps.begin()
    _core.enter_again()


class State:
    """What joiners get, and what commit() and restore() are about.

    Derive: save, restore, capture, install. Or, as for Horovod, save, restore and sync: all workers
    then call sync() whenever the world has changed, as they enter the training function again.
    `bcast_object` and `get_rank` are Horovod's: functions for a derived class's own use.
    """

    # Generators from which all ranks have drawn the same numbers (they shuffle alike, say), so a
    # joiner must go on with them. Of the others each rank has its own (for dropout, say).
    same_random = ()

    def __init__(self, bcast_object=None, get_rank=None):
        self._bcast_object = bcast_object or broadcast_object
        self._rank = get_rank or _core.rank
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

    def random_states(self):
        """By generator that the script may use, picklable."""
        return {"python": random.getstate()}

    def set_random_states(self, states):
        """Of some of the generators."""
        if "python" in states:
            random.setstate(states["python"])

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
            raise HostsUpdatedInterrupt(skip_sync=True)

    def reset(self):
        """For derived classes: called after the world has changed, before the reset callbacks."""

    def on_hosts_updated(self, timestamp, update_res):
        """Horovod's launcher calls it. Here the library itself says when the world has changed."""

    def sync(self):
        """All workers become what rank 0 is, but for their random states."""
        if _core.is_joining():
            _core.enter()
            return
        everyone = allgather_made(self._random_digests, "ringmaster.state.random")
        self.same_random = [name for name, digest in everyone[0].items()
                            if all(other.get(name) == digest for other in everyone)]
        while True:
            try:
                captured, _ = broadcast_made(self.capture, 0, "ringmaster.state.sync")
                return self.install(captured)
            except RootLostError:  # on all ranks: whoever has rank 0 now is as good
                pass

    def _random_digests(self):
        return {name: hashlib.sha256(pickle.dumps(kept)).digest()
                for name, kept in self.random_states().items()}

    # ---- For run

    def on_view_changed(self):
        if Steps.commit_ends_step:
            self._changed = True  # reset callbacks run when train() is entered again
        else:
            self.on_reset()

    def forget_changes(self):
        """What has changed before the state came from others is no news."""
        self._changed = False

    def on_entering(self):
        """The training function is about to be entered, the first time or again."""

    def on_reset(self):
        self.reset()
        for callback in self._reset_callbacks:
            callback()


class ObjectState(State):
    """Values as attributes: ObjectState(batch=0, epoch=0, sampler=sampler). What has state_dict()
    and load_state_dict(), such as a sampler, stays the object that it is and is kept and handed on
    by them; everything else by value.

    `keeps_copy = False`, set on the state, spares the copy that commit() keeps for restore(). Only
    a script that calls restore() itself needs it: run() never goes back.
    """
    keeps_copy = True

    def __init__(self, bcast_object=None, get_rank=None, **values):
        super().__init__(bcast_object, get_rank)
        for name in values:
            if name != "values" and callable(getattr(type(self), name, None)):
                raise ValueError("%s: is the name of a method of the state, choose another" % name)
        self._parts = {name: value for name, value in values.items()
                       if hasattr(value, "state_dict") and hasattr(value, "load_state_dict")}
        self._names = sorted(set(values) - set(self._parts))
        for name, value in values.items():
            setattr(self, name, value)
        self._kept = self._kept_parts = None
        self._bind_sampler()
        self.save()

    def __setattr__(self, name, value):
        """A part that is replaced is the new one from then on, also for joiners and restore()."""
        super().__setattr__(name, value)
        if name in self.__dict__.get("_parts", ()):
            self._parts[name] = value
            self._bind_sampler()

    def values(self):
        return {name: getattr(self, name) for name in self._names}

    def _all_values(self):
        """Those of values(), which a value of the script's own may hide."""
        return ObjectState.values(self) if "values" in self._names else self.values()

    def save(self):
        if not self.keeps_copy:
            self._kept = self._kept_parts = None
            return
        self._kept = copy.deepcopy(self._all_values())
        self._kept_parts = self.copied(self._part_states(), self._kept_parts)

    def copied(self, value, before):
        """A copy of `value`. `before`: the last one, whose memory it may use, or None."""
        del before
        numbers = {id(entry): list(entry)  # for deepcopy(), which copies them one by one
                   for part in value.values() if isinstance(part, dict)
                   for entry in part.values() if is_list_of_numbers(entry)}
        return copy.deepcopy(value, numbers)

    def restore(self):
        if self._kept is None:
            raise RuntimeError("restore(): the state keeps no copy, because keeps_copy is False")
        for name, value in copy.deepcopy(self._kept).items():
            setattr(self, name, value)
        self._load_parts(self.copied(self._kept_parts, None))

    def capture(self):
        return {"values": self._all_values(), "parts": self._part_states(),
                "random": {name: kept for name, kept in self.random_states().items()
                           if name in self.same_random}}

    def install(self, captured):
        self._load_parts(captured["parts"])
        for name, value in captured["values"].items():
            setattr(self, name, value)
        self.same_random = list(captured["random"])
        self.set_random_states(captured["random"])
        self.save()

    def prepare_commit(self):
        for index, sampler in enumerate(self._samplers()):
            if runs_in_place():
                if not sampler.recorded():
                    continue
                raise RuntimeError(
                    "sampler: is used as for Horovod, which needs a training function that is "
                    "entered again after a change: leave out in_place=True, or loop over "
                    "sampler.batches(n)")
            if sampler.streams:
                name = "ringmaster.sampler.%d" % index
                sampler.merge(allgather_object(sampler.recorded(), name))

    def on_entering(self):
        for sampler in self._samplers():  # those of joiners have begun no iteration either
            sampler.forget_iteration()

    def _samplers(self):
        return [part for part in self._parts.values() if isinstance(part, ElasticSampler)]

    def _bind_sampler(self):
        """To what wants to know of one: a DistributedOptimizer of PyTorch."""
        for sampler in self._samplers():
            sampler.in_state = True
        for part in self._parts.values():
            if hasattr(part, "adopt"):
                part.adopt(self, self._samplers()[0] if len(self._samplers()) == 1 else None)

    def _part_states(self):
        return {name: part.state_dict() for name, part in self._parts.items()}

    def _load_parts(self, states):
        if set(states) != set(self._parts):
            raise ValueError("the state has %s here and %s elsewhere: all workers must run the "
                             "same script" % (sorted(self._parts), sorted(states)))
        for name, part in self._parts.items():
            part.load_state_dict(states[name])


def is_list_of_numbers(value):
    """Of whole ones, such as a sampler has of all its samples."""
    return type(value) is list and set(map(type, value)) == {int}


def _syncs_itself(state):
    """Its class is derived as for Horovod: what sync() sends is all that joiners get."""
    return type(state).sync is not State.sync


def _begin(state, in_place):
    joins = _core.is_joining()
    _core.enter()
    if not joins:
        state.sync()
        return
    # The others run their reset callbacks, which may train a step, as Horovod's examples do, and
    # need this worker for that. Its copy is from before them: it is the same afterwards, or, for
    # Horovod's scripts, comes once more.
    state.on_reset()
    if not in_place:
        _sync_if_wanted(state, True)


def _go_on(state, skip_sync, within_step=False):
    if within_step:
        _name_ranks_anew()
    state.on_reset()
    _sync_if_wanted(state, not skip_sync)


def _name_ranks_anew():
    """If a worker is gone that some rank means in this step, ranks mean those that are left: the
    loss of a broadcast's root moves them on all ranks alike.
    """
    while True:
        try:
            for rank in range(len(_core.workers_of_calls())):
                broadcast_object(True, rank, "ringmaster.elastic.rank.%d" % rank)
            return
        except RootLostError:
            pass


def _sync_if_wanted(state, wanted):
    """All workers call it as they enter again. If nobody has joined they are equal, and nothing is
    to be sent.
    """
    wanted = wanted or _syncs_itself(state)
    if any(allgather_object(wanted, "ringmaster.state.wanted")):
        state.sync()


def _come_back(state, in_place):
    try:
        _enter_again()
    except WorkerDroppedError as error:  # nobody lets this process in any more: another is started
        raise SystemExit(error.code) from error
    state.forget_changes()
    if in_place:
        state.on_reset()
    else:
        _go_on(state, skip_sync=False)


def _say_if_fixed():
    if _core.has_sidecar() or _core.size() == 1 or _core.rank() != 0:
        return
    print("ringmaster: elastic.run: an MPI launcher has started these %d processes: none can join, "
          "and when one dies the others end. `ringmaster run` and a HorovodJob are elastic"
          % _core.size(), file=sys.stderr)


def run(function=None, *, in_place=False):
    """Decorates `train(state, ...)`. A joiner gets the state from the others before it enters.

    After a change of the world train() is entered again from its top, without rollback, as
    Horovod's scripts expect; with in_place=True it just goes on. A worker that was dropped waits
    until it is let in again, gets the state from the others, and enters train() again.
    """
    if function is None:
        return functools.partial(run, in_place=in_place)

    @functools.wraps(function)
    def wrapper(state, *args, **kwargs):
        global _entry, _running
        if not isinstance(state, State):
            raise ValueError("state: is a %s, must be a State (ObjectState, TorchState, ...)"
                             % type(state).__name__)
        if in_place and _syncs_itself(state):
            raise ValueError("in_place: is True, but the state has a sync() of its own, which all "
                             "workers have to call after a change: allowed is False")
        _core.init()
        _say_if_fixed()
        _core.register_state("elastic.state", state.capture, state.install)
        before, _running = (_running, Steps.commit_ends_step), state
        Steps.commit_ends_step = not in_place
        Steps.begin()
        prepare = functools.partial(_begin, state, in_place)
        ways_back = [mark() for mark in _on_run]
        try:
            while True:
                try:
                    prepare()
                    for callback in [state.on_entering, *_entering]:
                        callback()
                    return function(state, *args, **kwargs)
                except HostsUpdatedInterrupt as change:
                    prepare = functools.partial(_go_on, state, change.skip_sync,
                                                change.within_step)
                except WorkerDroppedError as error:
                    print("ringmaster: %s; waiting to be let in again" % error, file=sys.stderr)
                    prepare = functools.partial(_come_back, state, in_place)
                _entry += 1
                for go_back in ways_back:
                    go_back()
        finally:
            _running, Steps.commit_ends_step = before

    return wrapper
