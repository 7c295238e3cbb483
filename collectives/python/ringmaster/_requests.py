"""Names and descriptions of what is asked for, the same for all frameworks."""

import functools
from ctypes import c_size_t

from ringmaster import _core
from ringmaster._library import Tensor
from ringmaster.process_sets import ProcessSet


@functools.lru_cache(maxsize=4096)
def described(shape, dtype):
    """The rm_tensor of a shape: what ranks compare."""
    return Tensor((c_size_t * len(shape))(*shape), len(shape), dtype)


def full_name(kind, name, process_set):
    """As bytes; without a `name` counted within the step."""
    if not isinstance(process_set, ProcessSet):
        raise ValueError("process_set: is a %s, must be a ProcessSet" % type(process_set).__name__)
    number = process_set.number()
    if name:
        return ("%s.%s" % (kind, name)).encode()
    # Counted for each set: ranks of other sets ask for other numbers of operations.
    return _core.auto_name("%s.set%d" % (kind, number) if number else kind).encode()


def names_of_group(kind, name, count, process_set):
    return in_group(full_name(kind, name, process_set), count)


@functools.lru_cache(maxsize=64)
def in_group(base, count):
    """The names of a group's members."""
    return tuple(base + b".%d" % index for index in range(count))
