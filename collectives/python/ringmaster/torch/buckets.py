"""Buckets: the gradients of a DistributedOptimizer that travel together, each with the rank's
contribution.

A bucket is filled from the gradients, sent, received, and put back into the gradients.
"""

import torch

from ringmaster.reductions import Sum
from ringmaster.torch.compression import FP16Compressor, NoneCompressor
from ringmaster.torch.handles import synchronize
from ringmaster.torch.starting import start_allgathers, start_allreduce

# Newer versions warn where it is not said whether entries are checked.
_UNCHECKED = {"check_invariants": False} \
    if "check_invariants" in (torch.sparse_coo_tensor.__doc__ or "") else {}

# Compressions from which a contribution comes back as it was.
_KEEPS_SMALL_NUMBERS = (NoneCompressor, FP16Compressor)


class _Bucket:
    """What both kinds have: the parameters, and what their gradients were when they were sent."""

    _sent = ()

    def _remember(self):
        self._sent = [(parameter, parameter.grad, _version(parameter.grad))
                      for parameter in self.parameters]

    def changed(self):
        """The parameters whose gradient is no longer what was sent of it."""
        return [parameter for parameter, gradient, version in self._sent
                if parameter.grad is not gradient or _version(gradient) != version]


def _version(gradient):
    return 0 if gradient is None else gradient._version


class DenseBucket(_Bucket):
    """Gradients of parameters of one type in one memory, and room for the contribution, in one
    allreduce.

    It is reduced in place, so beside the gradients there is one copy of them. Whatever has to be
    sent again is filled again: the gradients stay as they are until scatter().
    """

    is_sparse = False

    def __init__(self, name, parameters, process_set, priority=0):
        self.name = name.encode()
        self.priority = priority
        self.parameters = parameters  # may become none, if all of them turn out to be sparse
        self.pending = set(parameters)
        self.handle = None
        self._process_set = process_set
        self._first = parameters[0]  # whose type and device count, also when it has left
        self._places = {parameter: place for place, parameter in enumerate(parameters, start=1)}
        self._padding = 0
        self._data = self._result = None

    def fill(self, weight, contribution, compression):
        """Packs gradients * weight and the contribution into what is sent."""
        self._remember()
        dtype, device = self._first.dtype, self._first.device
        self._contributors = len(contribution)
        self._elements = sum(parameter.numel() for parameter in self.parameters)
        packed = torch.empty(self._elements + self._contributors + self._padding, dtype=dtype,
                             device=device)
        at = 0
        for parameter in self.parameters:
            part = packed[at:at + parameter.numel()]
            if weight == 0.0 or parameter.grad is None:
                part.zero_()  # not multiplied: the gradient of an empty batch is not a number
            else:
                gradient = parameter.grad.detach()
                gradient = gradient.to_dense() if gradient.is_sparse else gradient
                torch.mul(gradient.reshape(-1), weight, out=part)
            at += parameter.numel()
        flags = torch.tensor(list(contribution) + [0.0] * self._padding, dtype=dtype)
        self._shape = None
        if not self.parameters:  # nothing that a compression of the script's own could be given
            packed[:] = flags
            self._data = packed.to(self._compressed_type(compression))
            return
        if compression in _KEEPS_SMALL_NUMBERS:
            packed[at:] = flags
            self._data, self._context = compression.compress(packed)
            return
        # One of the script's own may do anything to numbers: it sees gradients alone.
        compressed, self._context = compression.compress(packed[:at])
        self._shape = compressed.shape
        self._data = torch.cat([compressed.reshape(-1), flags.to(compressed)])

    def travels_as_half(self, compression):
        """Whether what is added up are float16s."""
        return self._compressed_type(compression) == torch.float16

    def _compressed_type(self, compression):
        return compression.compress(torch.ones(1, dtype=self._first.dtype))[0].dtype

    def drop(self, parameter):
        """It travels elsewhere from now on. Ranks that have dropped different ones have different
        lengths, also where these are of one size.
        """
        self.parameters = [other for other in self.parameters if other is not parameter]
        self.pending.discard(parameter)
        self._padding += self._places[parameter]

    def send(self):
        self.handle = start_allreduce(self._data, self._data, self.name, Sum, self._process_set,
                                      priority=self.priority)

    def receive(self, compression):
        """Waits; returns the summed contribution as a list."""
        handle, self.handle = self.handle, None
        received = synchronize(handle)
        if not self.parameters:
            return received[:self._contributors].tolist()
        if self._shape is None:
            self._result = compression.decompress(received, self._context)
            return self._result[self._elements:][:self._contributors].tolist()
        compressed = received[:self._shape.numel()].reshape(self._shape)
        self._result = compression.decompress(compressed, self._context).reshape(-1)
        return received[self._shape.numel():][:self._contributors].tolist()

    def scatter(self, divisor, but=frozenset()):
        """Puts the result into the gradients, but not into those of the parameters in `but`."""
        at = 0
        for parameter in self.parameters:
            part = self._result[at:at + parameter.numel()].view_as(parameter)
            at += parameter.numel()
            if parameter in but:
                continue
            if parameter.grad is None and not parameter.requires_grad:
                continue  # it was frozen since: with a gradient, even of zero, it would decay
            if parameter.grad is None or parameter.grad.is_sparse:
                parameter.grad = torch.empty_like(parameter.data)
            parameter.grad.detach().copy_(part if divisor == 1.0 else part / divisor)
        self.reset()

    def reset(self):
        self.pending = set(self.parameters)
        self._data = self._result = None
        self._sent = ()


class SparseBucket(_Bucket):
    """One parameter's sparse gradient, by one allgather: of how many entries there are, their
    indices, their values and the contribution, as bytes. One operation has one set of participants.
    """

    is_sparse = True

    def __init__(self, name, number, parameter, sparse_dim, process_set):
        self.name = name.encode()
        self.number = number  # of the parameter, among the optimizer's
        self.parameters = [parameter]
        self.pending = {parameter}
        self.handle = None
        self._process_set = process_set
        self.sparse_dim = sparse_dim

    def fill(self, weight, contribution, _compression):
        self._remember()
        parameter, = self.parameters
        gradient, device = parameter.grad, parameter.device
        if weight == 0.0 or gradient is None:
            count = 0
            indices = torch.empty(0, dtype=torch.int64, device=device)
            values = torch.empty(0, dtype=parameter.dtype, device=device)
        else:
            gradient = gradient.detach()
            gradient = gradient if gradient.is_sparse else gradient.to_sparse(self.sparse_dim)
            indices, values = gradient._indices(), gradient._values() * weight
            count = indices.shape[1]
        self._contributors = len(contribution)
        self._input = torch.cat([_bytes_of(torch.tensor([count], device=device)),
                                 _bytes_of(indices), _bytes_of(values),
                                 _bytes_of(torch.tensor(contribution, dtype=torch.float64,
                                                        device=device))])

    def travels_as_half(self, _compression):
        """Values travel as they are, and the library adds nothing up."""
        return False

    def send(self):
        self._lengths = []  # in bytes, by rank
        self.handle = start_allgathers([self._input], [self.name], self._process_set,
                                       [self._lengths]).single()

    def receive(self, _compression):
        """Waits; returns the summed contribution as a list."""
        handle, self.handle = self.handle, None
        gathered = synchronize(handle)
        parts = [self._parse(part) for part in gathered.split(self._lengths) if len(part)]
        self._indices = torch.cat([indices for indices, _, _ in parts], dim=1)
        self._values = torch.cat([values for _, values, _ in parts])
        return torch.stack([contribution for _, _, contribution in parts]).sum(0).tolist()

    def _parse(self, part):
        parameter, = self.parameters
        at = 0

        def take(count, dtype):
            nonlocal at
            size = count * torch.empty(0, dtype=dtype).element_size()
            taken = part[at:at + size].clone()  # for its alignment
            at += size
            return taken.view(dtype)

        count = take(1, torch.int64).item()
        indices = take(self.sparse_dim * count, torch.int64).view(self.sparse_dim, count)
        row = parameter.shape[self.sparse_dim:]
        values = take(count * row.numel(), parameter.dtype).view((count,) + tuple(row))
        return indices, values, take(self._contributors, torch.float64)

    def scatter(self, divisor, but=frozenset()):
        """Puts the result into the gradient, unless its parameter is in `but`. It is not coalesced,
        as after a backward pass.
        """
        parameter, = self.parameters
        values = self._values if divisor == 1.0 else self._values / divisor
        if parameter not in but and (parameter.grad is not None or parameter.requires_grad):
            parameter.grad = torch.sparse_coo_tensor(self._indices, values, parameter.shape,
                                                     **_UNCHECKED)
        self.reset()

    def reset(self):
        self.pending = set(self.parameters)
        self._input = self._indices = self._values = None
        self._sent = ()


def _bytes_of(tensor):
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def make_buckets(parameters, bucket_bytes, groups, prefix, process_set):
    """Buckets in the order in which they become ready: gradients of the last layers come first.

    `groups`: lists of parameters that travel together; the others are divided by size. Of what is
    ready together the first layers' go first, which the next forward pass needs first.
    """
    grouped = {parameter for group in groups for parameter in group}
    parts = [part for group in groups for part in _by_type(group)]
    parts += _by_size([parameter for parameter in parameters if parameter not in grouped],
                      bucket_bytes)
    place = {parameter: index for index, parameter in enumerate(parameters)}
    parts.sort(key=lambda part: -max(place[parameter] for parameter in part))
    return [DenseBucket("%s.%d" % (prefix, index), part, process_set, len(parts) - 1 - index)
            for index, part in enumerate(parts)]


def _by_type(parameters):
    parts = {}
    for parameter in reversed(parameters):
        parts.setdefault((parameter.dtype, parameter.device), []).append(parameter)
    return list(parts.values())


def _by_size(parameters, bucket_bytes):
    open_parts, sizes, parts = {}, {}, []
    for parameter in reversed(parameters):
        key = parameter.dtype, parameter.device
        size = parameter.numel() * parameter.element_size()
        if key not in open_parts or sizes[key] + size > bucket_bytes:
            open_parts[key], sizes[key] = [], 0
            parts.append(open_parts[key])
        open_parts[key].append(parameter)
        sizes[key] += size
    return parts
