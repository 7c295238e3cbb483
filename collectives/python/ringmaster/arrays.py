"""Starts collectives on numpy arrays: the layer between the library and frameworks whose tensors
can be seen as arrays.

Names are complete already (bytes). More than one array is a group, of which all complete or none.
Inputs are C-contiguous, only read, and kept until the operation is done. Results are new arrays.
Everything here may be called by any thread.
"""

from ctypes import c_size_t, memmove

import numpy

from ringmaster import _core, _in_flight, _library
from ringmaster._library import Request
from ringmaster._requests import described
from ringmaster.process_sets import global_process_set

# By name, because numpy itself has no bfloat16: frameworks bring the type with them.
_DTYPES = {
    "uint8": 0, "int8": 1, "int32": 2, "int64": 3, "float16": 4, "bfloat16": 5, "float32": 6,
    "float64": 7, "bool": 8, "uint16": 9, "int16": 10, "uint32": 11, "uint64": 12
}

# Memory with this alignment is taken over by TensorFlow as it is; other memory is copied.
_ALIGNMENT = 64


def dtype_of(array):
    """The library's number for the array's type. ValueError if it has none."""
    number = _DTYPES.get(array.dtype.name)
    if number is None:
        raise ValueError("tensor: has type %s, must be one of %s"
                         % (array.dtype.name, ", ".join(_DTYPES)))
    return number


def dtype_of_rows(array, verb):
    dtype = dtype_of(array)
    if array.ndim == 0:
        raise ValueError("tensor: is a scalar, must have one dimension or more to be " + verb)
    return dtype


def empty(shape, dtype):
    """An array with aligned memory."""
    array = numpy.dtype(dtype)
    count = 1
    for extent in shape:
        count *= extent
    raw = numpy.empty(count * array.itemsize + _ALIGNMENT, numpy.uint8)
    begin = -raw.ctypes.data % _ALIGNMENT
    return raw[begin:begin + count * array.itemsize].view(array).reshape(shape)


def start_allreduces(arrays, names, op, prescale=1.0, postscale=1.0,
                     process_set=global_process_set):
    """The result is a list of arrays of the same shapes."""
    dtypes = [dtype_of(array) for array in arrays]  # nothing is sent if one of them is wrong
    results = [empty(array.shape, array.dtype) for array in arrays]
    requests = [_request(_library.ALLREDUCE, names[i], arrays[i], dtypes[i], process_set, op=op,
                         output=_address(results[i]), prescale=float(prescale),
                         postscale=float(postscale))
                for i in range(len(arrays))]
    return _in_flight.submit_group(requests, (arrays, results), lambda _: results)


def start_allgathers(arrays, names, process_set=global_process_set, rows_by_rank=None):
    """The result is a list of arrays. `rows_by_rank`: a list for each, filled when it is done."""
    dtypes = [dtype_of_rows(array, "gathered") for array in arrays]
    requests = [_request(_library.ALLGATHER, names[i], arrays[i], dtypes[i], process_set)
                for i in range(len(arrays))]
    return _in_flight.submit_group(requests, arrays, _all_rows_like(arrays, rows_by_rank))


def start_reducescatters(arrays, names, op, prescale=1.0, postscale=1.0,
                         process_set=global_process_set, rows_by_rank=None):
    """`rows_by_rank`: a list for each array, filled when the operation is done."""
    dtypes = [dtype_of_rows(array, "scattered") for array in arrays]
    requests = [_request(_library.REDUCESCATTER, names[i], arrays[i], dtypes[i], process_set, op=op,
                         prescale=float(prescale), postscale=float(postscale))
                for i in range(len(arrays))]
    return _in_flight.submit_group(requests, arrays, _all_rows_like(arrays, rows_by_rank))


def start_alltoall(array, splits, name, process_set=global_process_set):
    """`splits`: how many rows go to each rank, None for equal parts.

    The result is (rows received, a list of how many came from each rank).
    """
    dtype = dtype_of_rows(array, "exchanged")
    request = _request(_library.ALLTOALL, name, array, dtype, process_set)
    if splits is not None:
        rows = [int(split) for split in splits]
        if any(split < 0 for split in rows):
            raise ValueError("splits: is %r, must not be negative" % rows)
        request.splits, request.splits_count = (c_size_t * max(1, len(rows)))(*rows), len(rows)
    received = []
    rows_of = _rows_like(array, received)
    operation = _in_flight.submit(request, array)
    return _in_flight.Handle(operation, lambda done: (rows_of(done), received))


def start_broadcasts(arrays, root, names, process_set=global_process_set):
    """From the worker `root`, as _core.worker_at() names it. The result is a list of arrays."""
    dtypes = [dtype_of(array) for array in arrays]
    results = [empty(array.shape, array.dtype) for array in arrays]
    if root == _core.own_worker():
        for result, array in zip(results, arrays):
            result[...] = array
    requests = [_request(_library.BROADCAST, names[i], results[i], dtypes[i], process_set,
                         output=_address(results[i]), root=root.encode())
                for i in range(len(arrays))]
    return _in_flight.submit_group(requests, results, lambda _: results)


def _request(kind, name, array, dtype, process_set, **fields):
    shape = described(array.shape, dtype)
    return Request(kind, name, input=_address(array), shape=shape.shape,
                   dimensions=shape.dimensions, dtype=dtype, process_set=process_set.number(),
                   **fields)


def _address(array):
    return array.__array_interface__["data"][0]


def _all_rows_like(arrays, rows_by_rank):
    makes = [_rows_like(array, rows_by_rank and rows_by_rank[index])
             for index, array in enumerate(arrays)]
    return lambda done: [make(member) for make, member in zip(makes, done.members())]


def _rows_like(array, rows_by_rank=None):
    """Makes the result of an operation whose rows are like those of `array`."""
    shape, dtype = array.shape[1:], array.dtype

    def finish(operation):
        address, rows = operation.result(rows_by_rank)
        result = empty((rows,) + shape, dtype)
        if result.nbytes:
            memmove(_address(result), address, result.nbytes)
        return result

    return finish
