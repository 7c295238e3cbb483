"""The process's place in the job: init to shutdown, ranks, steps, and the state that joiners get.

One instance for a process, as in the library below. Called from the script's main thread; only
`report` and the rank functions are for any thread.
"""

import ctypes
import math
import os
import pickle
import warnings
from collections import namedtuple

from ringmaster import _library, _pickled, errors
from ringmaster._numbers import whole


class View(namedtuple("View", "rank size number")):
    """This worker's place in a membership: its rank, the world's size, and the view's number.

    `number` is lineage << 40 | n and only rises; str(view) is lineage.n, as status and logs say.
    """
    __slots__ = ()

    def __str__(self):
        return "%d.%d" % (self.number >> 40, self.number & (1 << 40) - 1)


_NOT_INITIALISED = "ringmaster is not initialised: call init() first"

_resize_callbacks = []
_change_missed_callbacks = []
_on_shutdown = []
_providers = {}  # name: (save() -> picklable, load(what was saved))
_sufficient = False  # the providers are enough for a joiner to go on where the others are
_name_counts = {}
_not_finite = set()  # names whose value has been left out by report(), and said so
_process = None  # that called init(): not one that was forked from it
_view = None
_workers = ()  # of _view, by rank
_last_step = None
_entered = False  # as a joiner, at the end of a step of the others
_last_rank = None  # at the last shutdown()
_saved = None  # keeps the bytes that the library reads until the call ends in which `save` ran
_callback_error = errors.CallbackError()
_c_callbacks = None


def library():
    return _library.get()


def call(function, *args):
    """Calls a library function that returns a status, and raises what belongs to it."""
    status = getattr(library(), function)(*args)
    if status != errors.OK:
        _callback_error.raise_kept()
    errors.check(status, library())


# ---- Beginning and end


def _limit(timeout):
    """As the library takes it, for which 0 is none: under a sidecar the call then waits for as long
    as the job goes on, elsewhere for 600 seconds.
    """
    return 0.0 if timeout is None else float(timeout)


def init(timeout=None):
    """Connects to the sidecar; without one the process is a world of one. Again is a no-op.

    A bootstrapping worker blocks until the first view stands. A joiner returns at once and enters
    later (`elastic.run`, the first step of a DistributedOptimizer, or `enter`). After a shutdown()
    it is agreed by all ranks as that was: blocks until every rank has called it.
    """
    global _process
    if is_initialized():
        return
    call("rm_init", _limit(timeout))
    # Only the library sees the exit status, however the interpreter comes to it.
    call("rm_shutdown_at_exit")
    _process = os.getpid()
    if _sufficient:
        _register_callbacks()
    _begin_step()


def is_initialized():
    """True from init() until shutdown()."""
    return bool(library().rm_initialized())


def is_joining():
    """True while this worker waits to be let into the world: it has no say in any step yet."""
    return bool(library().rm_is_joining())


def enter(timeout=None):
    """A joiner blocks until a step boundary lets it in and its state is loaded.

    No-op for others.
    """
    if not is_joining():
        return
    enter_again(timeout)


def enter_again(timeout=None):
    """After a WorkerDroppedError: blocks until this worker is let in, with the others' state."""
    global _entered, _saved
    try:
        call("rm_enter", _limit(timeout))
    finally:
        _saved = None
    _entered = True
    _begin_step()


def shutdown(timeout=None):
    """Agreed by all ranks: returns when every rank has called it. A no-op when not initialised.

    Process sets are gone, and operations that are under way fail. init() begins again, as often as
    one likes; a process that ends instead, with exit status 0, ends the job.
    """
    global _last_rank
    if not is_initialized():
        return
    try:
        call("rm_shutdown", _limit(timeout))
    finally:
        if not is_initialized():  # also where it is down though not all have agreed
            _last_rank = library().rm_last_rank()
            _forget()


def _forget():
    global _view, _workers, _last_step, _entered
    _view, _workers, _last_step, _entered = None, (), None, False
    _name_counts.clear()
    for callback in list(_on_shutdown):
        callback()


def on_shutdown(callback):
    """Calls it after each shutdown()."""
    _on_shutdown.append(callback)
    return callback


# ---- Ranks


def _refuse():
    if _process not in (None, os.getpid()):
        errors.check(errors.FORKED, library())
    raise ValueError(_NOT_INITIALISED)


def _number(function, text):

    def get():
        value = getattr(library(), function)()
        if value < 0 or not is_initialized():
            _refuse()
        return value

    get.__name__ = get.__qualname__ = function[len("rm_"):]
    get.__doc__ = text + " ValueError before init(). It moves when the world changes."
    return get


rank = _number("rm_rank", "This worker's place among all, from 0.")
size = _number("rm_size", "How many workers there are.")


def newest_rank():
    """rank(), or after a shutdown() the rank that this worker had in it; None before init()."""
    try:
        return rank()
    except ValueError:
        return _last_rank


local_rank = _number("rm_local_rank", "This worker's place among those of its pod, from 0.")
local_size = _number("rm_local_size", "How many workers its pod has.")
cross_rank = _number("rm_cross_rank", "Its pod's place among all pods, in rank order, from 0.")
cross_size = _number("rm_cross_size", "How many pods have workers.")


def view():
    """The View of this moment. It moves with every change of the membership, also within a step."""
    now = _read_view()
    if now.rank < 0 or not is_initialized():
        _refuse()
    return now


SELF = -1  # for name_of()


def own_worker():
    """Which worker this process is, as worker_at() names them. A joiner enters first."""
    if not is_initialized():
        _refuse()
    enter()
    return name_of(SELF)


def worker_at(root_rank):
    """Which worker a broadcast's root means in this step. A joiner enters first."""
    if not is_initialized():
        _refuse()
    enter()
    workers, number = workers_of_calls(), whole(root_rank)
    if number is None or not 0 <= number < len(workers):
        raise ValueError("root_rank: is %r, must be a rank, 0 to %d"
                         % (root_rank, len(workers) - 1))
    return workers[number]


def workers_of_calls():
    """Which worker a rank means in this step's calls (rm_step_worker_id), by rank."""
    lib = library()
    while True:  # until nothing moved between the first look and the last
        number, workers = lib.rm_step_epoch(), []
        if _view is not None and number == _view.number:
            return _workers
        while lib.rm_step_worker_id(len(workers)):
            workers.append(lib.rm_step_worker_id(len(workers)).decode())
        if lib.rm_step_epoch() == number:
            return tuple(workers)


def name_of(rank):
    """The worker that has this rank now, or SELF; empty if there is none."""
    return (library().rm_worker_id(int(rank)) or b"").decode()


# ---- Steps


def auto_name(kind, names=None):
    """A name for an operation without one: counted within the step, so that joiners agree.

    `names`: after so many the first one comes again.
    """
    count = _name_counts.get(kind, 0)
    _name_counts[kind] = count + 1
    return "%s.noname.%d" % (kind, count % names if names else count)


def step_view():
    """The View as of the beginning of this step: the same number on all ranks. It does not move
    within the step.
    """
    if _view is None:
        raise ValueError(_NOT_INITIALISED)
    return _view


def step_workers():
    """Which worker had which rank when this step began, as worker_at() names them.

    A joiner enters first.
    """
    if _view is None:
        raise ValueError(_NOT_INITIALISED)
    enter()
    return _workers


def end_step():
    """Ends a step (see docs/python.md). Planned joins and leaves happen here. Returns StepInfo.

    RuntimeError: in a training function that is entered again state.commit() does.
    """
    for check in _before_end_step:
        check()
    return end_step_now()


_before_end_step = []
_after_end_step = []


def before_end_step(check):
    """Calls it when the script itself calls end_step()."""
    _before_end_step.append(check)
    return check


def after_end_step(callback):
    """Calls it with the StepInfo whenever a step has ended."""
    _after_end_step.append(callback)
    return callback


def end_step_now():
    """As end_step(), for whoever may do it."""
    global _last_step, _saved
    info = _library.StepInfo()
    try:
        call("rm_step_end", ctypes.byref(info))
    finally:
        _saved = None
    _last_step = info
    _begin_step()
    # An interrupt (Ctrl-C, a signal handler's sys.exit()) that fell into the save for a joiner. The
    # step has ended all the same.
    _callback_error.raise_kept()
    if info.old_size != info.new_size:
        for callback in list(_resize_callbacks):
            callback(info.old_size, info.new_size)
    for callback in _after_end_step:
        callback(info)
    return info


def has_sidecar():
    """Whether Ringmaster has started this process; else it is alone, or mpirun has started it."""
    return bool(os.environ.get("RINGMASTER_SOCKET"))


def ends_steps():
    """Whether the job does, as far as this worker has seen: it has ended one, or joined at the end
    of one.
    """
    return _last_step is not None or _entered


def last_step():
    """StepInfo of the last step that this worker completed; None before the first."""
    return _last_step


def _begin_step():
    global _view, _workers
    _name_counts.clear()
    number = library().rm_step_epoch()
    if not number:  # a joiner that has not entered: what it will probably be
        _view, _workers = _read_view(), ()
    elif _view is None or _view.number != number:
        workers = workers_of_calls()
        _view, _workers = View(workers.index(name_of(SELF)), len(workers), number), workers


def _read_view():
    lib = library()
    while True:  # until nothing moved between the first look and the last
        before = lib.rm_epoch()
        found = View(lib.rm_rank(), lib.rm_size(), before)
        if lib.rm_epoch() == before:
            return found


def end_join():
    """All ranks have joined, so they are at one point of the script: names are counted anew, and
    ranks mean the same on all. While this rank waited the others may have ended steps, which it has
    not heard of.
    """
    before = _view
    _begin_step()
    if before is None or before.number == _view.number:
        return
    if before.size != _view.size:
        for callback in list(_resize_callbacks):
            callback(before.size, _view.size)
    for callback in _change_missed_callbacks:
        callback()


def on_change_missed(callback):
    """Calls callback() after a join in which this rank waited while the others' view changed."""
    _change_missed_callbacks.append(callback)
    return callback


def on_resize(callback):
    """Calls callback(old, new) after a step in which the world's size changed.

    Usable as decorator.
    """
    _resize_callbacks.append(callback)
    return callback


def report(**values):
    """Progress for people and metrics: report(loss=0.3, samples=1200). The last value counts.

    A value that is not finite, such as the mean loss of no sample, is left out with a warning.
    """
    for name, value in values.items():
        number = float(value)
        if math.isfinite(number):
            call("rm_report", name.encode(), number)
        elif name not in _not_finite:
            _not_finite.add(name)
            warnings.warn("report: %s is %s, must be a finite number: it is left out each time"
                          % (name, number), RuntimeWarning, stacklevel=2)


def last_rebuild():
    """Times of the last rebuild as the library's JSON text; empty if there was none."""
    return (library().rm_last_rebuild() or b"").decode()


def memory(address, size):
    """Bytes of the library's as they are, of any size. Valid as long as the library keeps them."""
    return memoryview((ctypes.c_char * size).from_address(address)).cast("B")


# ---- State for joiners


def register_state(name, save, load, sufficient=True):
    """What joiners get at a step boundary from a survivor: load(save()), by name.

    Not `sufficient`: a part, of which alone no joiner could go on where the others are.
    """
    global _sufficient
    _providers[name] = (save, load)
    if sufficient and not _sufficient:
        _sufficient = True
        if is_initialized():
            _register_callbacks()


def unregister_state(name):
    """Joiners get it no more. Nothing happens if there is none of this name."""
    _providers.pop(name, None)


def registered_states():
    return tuple(_providers)


def save_state():
    """The registered state as bytes. If there is none they tell the joiner, which can't go on
    without; this worker can.
    """
    _, data, _ = _pickled.made(lambda: {name: save() for name, (save, _) in _providers.items()},
                               lambda: "the worker that was to give this one the state")
    return data


def load_state(data):
    saved = pickle.loads(data)
    if isinstance(saved, _pickled.Failure):
        raise ValueError(saved.text)
    if set(saved) != set(_providers):
        raise ValueError("this worker registered the state %s, the others gave %s: all workers "
                         "must run the same script" % (sorted(_providers), sorted(saved)))
    for name, (_, load) in _providers.items():
        load(saved[name])


def _register_callbacks():
    global _c_callbacks

    def save(_user, data, size):
        global _saved
        _saved = None  # before the next copy is made beside it
        _saved = save_state()
        data[0] = ctypes.cast(ctypes.c_char_p(_saved), ctypes.c_void_p)
        size[0] = len(_saved)

    def load(_user, data, size):
        load_state(memory(data, size))

    _c_callbacks = (_library.SAVE(_callback_error.guard(save)),
                    _library.LOAD(_callback_error.guard(load)))
    call("rm_state_callbacks", *_c_callbacks, None)
