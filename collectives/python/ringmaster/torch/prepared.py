"""Groups of tensors that are reduced again and again, and are described to the library once.

An extension: Horovod has no such call.
"""

import sys
from ctypes import byref, c_uint64

import torch

from ringmaster import _core, _in_flight, _library
from ringmaster._library import Request
from ringmaster._requests import full_name
from ringmaster.process_sets import global_process_set
from ringmaster.reductions import Adasum, choose_op
from ringmaster.torch import devices
from ringmaster.torch.handles import Handle
from ringmaster.torch.tensors import dtype_of, request_at_any_time


class PreparedAllreduce:
    """What prepare_grouped_allreduce() returns. Any thread; of one object one at a time."""

    def __init__(self, tensors, name, op, prescale, postscale, process_set):
        self._group = c_uint64()  # first: __del__ reads it
        self._tensors = list(tensors)
        self._name, self._process_set = name, process_set
        self._scaled = dict(op=op, prescale=float(prescale), postscale=float(postscale))
        self._places = [_place_of(tensor, index) for index, tensor in enumerate(self._tensors)]
        self._memory = _memory_of(self._tensors)
        # Keep the memory that the library was told of, also where a tensor gets other memory.
        self._kept = [tensor.detach() for tensor in self._tensors]
        self._device = devices.number_of(self._tensors[0])
        self._describe()

    @property
    def tensors(self):
        """The tensors, which it keeps alive."""
        return list(self._tensors or ())

    def start(self):
        """Asks for the reduction and returns a Handle at once. synchronize() of it returns the
        tensors, in which the results stand. ValueError: a tensor is not what it was when the group
        was prepared, or the group is in flight already, or was freed.
        """
        return Handle(self._start())

    def run(self):
        """Reduces, in place, and returns the list of the tensors. Errors of start() and of
        synchronize().
        """
        return self._start().wait()

    def free(self):
        """Forgets the group; a second call does nothing. What is in flight goes on. A `with` block
        does the same at its end.
        """
        if self._group.value:
            _core.library().rm_free_group(self._group)
            self._group = c_uint64()
            self._tensors = self._memory = self._kept = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.free()

    def __del__(self):
        if not sys.is_finalizing():
            self.free()

    def _start(self):
        if not self._group.value:
            raise ValueError("prepared group: has been freed")
        if _memory_of(self._tensors) != self._memory:
            self._check()
        if self._process_set is not global_process_set and \
                self._process_set.number() != self._number:
            self._describe()  # it was added again, after a shutdown()
        event = None
        if self._device:
            event = devices.event_now(self._tensors[0])
        operation = _in_flight.start("rm_submit_group", self._group,
                                     event and event.cuda_event, buffers=(self._kept, event))
        results = self._tensors
        return _in_flight.Handle(operation, lambda _: list(results))

    def _describe(self):
        """Gives the library the addresses, and gets the number of the group."""
        name = full_name("allreduce", self._name, self._process_set)
        self._number = self._process_set.number()
        count = len(self._tensors)
        requests = (Request * count)()
        for index, tensor in enumerate(self._kept):
            # The moment at which their values are there is given with each start().
            requests[index] = request_at_any_time(
                _library.ALLREDUCE, None, tensor, dtype_of(tensor), self._process_set,
                output=tensor.data_ptr(), **self._scaled)
        group = c_uint64()
        _core.call("rm_prepare", name, requests, count, byref(group))
        _core.library().rm_free_group(self._group)
        self._group = group

    def _check(self):
        for index, tensor in enumerate(self._tensors):
            place = _place_of(tensor, index)
            if place == self._places[index]:
                continue
            raise ValueError(
                "tensors[%d]: is at %#x with shape %s, type %s on %s, and when the group was "
                "prepared it was at %#x with shape %s, type %s on %s: prepare it again"
                % ((index,) + place + self._places[index]))


def _memory_of(tensors):
    """What shows that a tensor is another one than before, at the least cost."""
    return list(map(torch.Tensor.data_ptr, tensors)), list(map(torch.Tensor.numel, tensors))


def _place_of(tensor, index):
    """Address, shape, type and device. ValueError: the library can't reduce it where it lies."""
    dtype_of(tensor)
    if not tensor.is_contiguous() or tensor.is_neg():
        raise ValueError("tensors[%d]: has shape %s and strides %s, must be contiguous: it is "
                         "reduced where it lies" % (index, tuple(tensor.shape), tensor.stride()))
    return tensor.data_ptr(), tuple(tensor.shape), tensor.dtype, tensor.device


def prepare_grouped_allreduce(tensors, name, op=None, prescale_factor=1.0, postscale_factor=1.0,
                              process_set=global_process_set):
    """Describes an allreduce of the same tensors in every step, in place, to the library once.

    Each run() of what it returns is then one operation, however many tensors there are: 100 small
    ones cost a tenth of grouped_allreduce_() or less. `tensors`: contiguous, of one type and on one
    device; they must stay where they are (an optimizer's zero_grad(set_to_none=True) makes new
    gradients, with set_to_none=False they stay). Every rank prepares the same shapes in the same
    order under the same `name`, or run() is a HorovodInternalError on all that says which tensor
    differs. `op` and the factors are those of allreduce(); Adasum is none of them. It asks no other
    rank, and goes on to work when the world has changed. ValueError: a wrong argument.
    """
    op = choose_op(op)
    tensors = list(tensors)
    if not tensors:
        raise ValueError("tensors: is empty, must have one tensor or more")
    if not name:
        raise ValueError("name: is %r, must be a name that no other operation has" % (name,))
    if op == Adasum:
        raise ValueError("op: is Adasum, which weighs each tensor by itself: it can't be prepared")
    first = tensors[0]
    for index, tensor in enumerate(tensors):
        dtype_of(tensor)
        if tensor.dtype != first.dtype or tensor.device != first.device:
            raise ValueError("tensors[%d]: has type %s on %s, and the first one %s on %s: a "
                             "prepared group has one type and device" %
                             (index, tensor.dtype, tensor.device, first.dtype, first.device))
    return PreparedAllreduce(tensors, name, op, prescale_factor, postscale_factor, process_set)
