"""init_process_group("ringmaster") and new_group(): groups are made of what the job says.

torch.distributed asks the environment for ranks and for an address of rank 0 unless it is told
otherwise, and tells a backend of a new group on the group's own ranks only. So both functions are
wrapped; with another backend they do what they did.
"""

import functools
import inspect
import os
import sys
from urllib.parse import parse_qs, urlparse

import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from ringmaster import _core, elastic
from ringmaster.torch.distributed.exact_mean import begin_again
from ringmaster.torch.distributed.process_group import (NAME, ProcessGroup, agreed, group_of,
                                                        number_of_ranks)

_made_with = {}  # arguments of the last init_process_group(), but those that the job knows
_hooks = None  # what sys.excepthook was before that and after it


class _OwnStore(dist.Store):
    """torch.distributed wants a store that all ranks share. Nothing here needs one: this is each
    process's own, and its counter of who has come to a barrier has counted all.
    """

    def __init__(self):
        super().__init__()
        self._values = {}

    def set(self, key, value):
        self._values[key] = value

    def get(self, key):
        if key not in self._values:
            raise KeyError("%s: nobody has set it, and the store of the backend ringmaster is this "
                           "process's own" % key)
        return self._values[key]

    def add(self, key, amount):
        if "store_based_barrier" in key:
            ours = _default_group()
            return ours.size() if ours is not None else _core.size()
        total = int(self._values.get(key, b"0")) + amount
        self._values[key] = str(total).encode()
        return total

    def check(self, keys):
        return all(key in self._values for key in keys)

    def wait(self, keys, timeout=None):
        del timeout
        for key in keys:
            self.get(key)

    def set_timeout(self, timeout):
        pass


_store = None  # C++ does not keep its Python part alive


def _rendezvous(url, **_):
    """Of ringmaster://: the rank and the size are the job's."""
    global _store
    given = parse_qs(urlparse(url).query)
    _core.init()
    rank, size = _core.rank(), _core.size()
    if not _core.is_joining():  # only later does a joiner know what it will be
        for name, value in (("rank", rank), ("world_size", size)):
            if name in given and int(given[name][0]) != value:
                raise ValueError("%s: is %s, but the job says %d; with the backend ringmaster it "
                                 "need not be given" % (name, given[name][0], value))
    if size == 1 and not _core.has_sidecar() and os.environ.get("WORLD_SIZE", "1") != "1":
        raise ValueError("WORLD_SIZE: is %s, but no job of Ringmaster has started this process; "
                         "start the script with `ringmaster run`, not with torchrun"
                         % os.environ["WORLD_SIZE"])
    _store = _OwnStore()
    everyone = ProcessGroup()  # within a step it may mean others than those of this moment
    yield _store, everyone.rank(), everyone.size()


def _create(options, _pg_options=None):
    ranks = list(options.global_ranks_in_group)
    return group_of(ranks) if ranks else ProcessGroup()


def _default_group():
    """The default group if it is ours."""
    group = c10d._get_default_group() if dist.is_initialized() else None
    return group if isinstance(group, ProcessGroup) else None


def _wrap_init(original):

    @functools.wraps(original)
    def init_process_group(*args, **options):
        global _made_with
        given = inspect.signature(original).bind(*args, **options).arguments
        if str(given.get("backend")).lower() not in (NAME, "cpu:" + NAME):
            return original(*args, **options)
        before = _default_group()
        if before is not None:
            if before.view == number_of_ranks():
                return None  # again is a no-op, as with ringmaster.init()
            dist.destroy_process_group()
        given.update(backend=NAME, init_method=NAME + "://", store=None)
        _made_with = {name: value for name, value in given.items()
                      if name not in ("rank", "world_size")}
        return _with_one_hook(original, given)

    return init_process_group


def _with_one_hook(original, given):
    """Newer versions of torch put a sys.excepthook that writes "[rank0]: " in front of each line
    around the one that they find. Without this one more would stand there after each change of the
    world, with the rank of that time.
    """
    global _hooks
    if _hooks is not None and sys.excepthook is _hooks[1]:
        sys.excepthook = _hooks[0]
    before = sys.excepthook
    original(**given)
    _hooks = before, sys.excepthook


def _wrap_new_group(original):

    @functools.wraps(original)
    def new_group(*args, **options):
        ours = _default_group()
        given = inspect.signature(original).bind(*args, **options).arguments
        if ours is None or str(given.get("backend") or NAME).lower() != NAME:
            return original(*args, **options)
        if given.get("use_local_synchronization"):
            raise ValueError("use_local_synchronization: is True, must be False with the backend "
                             "ringmaster: all ranks make a group together")
        ranks = given.get("ranks")
        with agreed(range(ours.size()) if ranks is None else ranks):
            return original(*args, **options)

    return new_group


def _follow_the_world():
    """As elastic.run enters the training function: the groups are those of the world of now."""
    begin_again()
    ours = _default_group()
    if ours is None or ours.view == number_of_ranks():
        return
    dist.init_process_group(**_made_with)


def _replace(name, wrap):
    wrapped = wrap(getattr(c10d, name))
    setattr(c10d, name, wrapped)
    setattr(dist, name, wrapped)


def register():
    """Once for a process."""
    if hasattr(dist.Backend, NAME.upper()):
        return
    parameters = inspect.signature(dist.Backend.register_backend).parameters
    options = {"devices": ["cpu"]} if "devices" in parameters else {}
    dist.Backend.register_backend(NAME, _create, extended_api=True, **options)
    dist.register_rendezvous_handler(NAME, _rendezvous)
    _replace("init_process_group", _wrap_init)
    _replace("new_group", _wrap_new_group)
    elastic.on_entering(_follow_the_world)
