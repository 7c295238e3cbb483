"""init_process_group("ringmaster") and new_group(): groups are made of what the job says.

torch.distributed asks the environment for ranks and for an address of rank 0 unless it is told
otherwise, and tells a backend of a new group on the group's own ranks only. So both functions are
wrapped; with another backend they do what they did.
"""

import functools
import inspect
from urllib.parse import parse_qs, urlparse

import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from ringmaster import _core, elastic
from ringmaster.torch.distributed import exact_mean
from ringmaster.torch.distributed.process_group import (NAME, ProcessGroup, agree_on, group_of)

_made_with = ((), {})  # arguments of the last init_process_group()


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
            return _core.size()
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
    actual = {"rank": _core.rank(), "world_size": _core.size()}
    for name, value in actual.items():
        if name in given and int(given[name][0]) != value:
            raise ValueError("%s: is %s, but the job says %d; with the backend ringmaster it need "
                             "not be given" % (name, given[name][0], value))
    _store = _OwnStore()
    yield _store, actual["rank"], actual["world_size"]


def _create(store, rank, size, timeout=None):
    del store, rank, size, timeout
    return ProcessGroup()


def _create_any(options, _pg_options=None):
    ranks = list(options.global_ranks_in_group)
    return group_of(ranks) if ranks else ProcessGroup()


def _default_group():
    """The default group if it is ours."""
    group = c10d._get_default_group() if dist.is_initialized() else None
    return group if isinstance(group, ProcessGroup) else None


def _wrap_init(original):

    @functools.wraps(original)
    def init_process_group(backend=None, init_method=None, *args, **options):
        global _made_with
        if str(backend).lower() != NAME:
            return original(backend, init_method, *args, **options)
        before = _default_group()
        if before is not None:
            if before.view == _core.view().number:
                return None  # again is a no-op, as with ringmaster.init()
            dist.destroy_process_group()
        if init_method in (None, "env://") and options.get("store") is None:
            init_method = NAME + "://"
        _made_with = args, dict(options, init_method=init_method)
        return original(backend, init_method, *args, **options)

    return init_process_group


def _wrap_new_group(original):

    @functools.wraps(original)
    def new_group(ranks=None, *args, **options):
        ours = _default_group()
        backend = options.get("backend") or (args[1] if len(args) > 1 else None)
        if ours is not None and (backend is None or str(backend).lower() == NAME):
            agree_on(range(ours.size()) if ranks is None else ranks)
        return original(ranks, *args, **options)

    return new_group


def _follow_the_world():
    """As elastic.run enters the training function: the groups are those of the world of now."""
    exact_mean.begin_again()
    ours = _default_group()
    if ours is None or ours.view == _core.view().number:
        return
    args, options = _made_with
    options = {name: value for name, value in options.items()
               if name not in ("rank", "world_size")}
    dist.init_process_group(NAME, options.pop("init_method"), *args, **options)


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
    dist.Backend.register_backend(NAME, _create_any, extended_api=True, **options)
    dist.register_rendezvous_handler(NAME, _rendezvous)
    _replace("init_process_group", _wrap_init)
    _replace("new_group", _wrap_new_group)
    elastic.on_entering(_follow_the_world)
