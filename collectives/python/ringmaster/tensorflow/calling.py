"""Calls Python on tensors' arrays: at once in eager mode, as an operation of a graph elsewhere.

Nothing is compiled against TensorFlow, so what a graph calls is a tf.numpy_function. It sees the
tensors' own memory, and its aligned results become tensors without a copy.

Two things follow from a graph's operations being blocking calls:

* In a tf.function TensorFlow runs them one after the other, in the order in which the function asks
  for them, which is the same on all ranks: no rank waits for another one that waits for it.
* In a graph of tf.compat.v1 nothing orders them. There each waits on a thread of its own
  (_on_own_thread), so that it holds up none of the threads that run the graph.
"""

import contextlib
import threading

import numpy
import tensorflow as tf
from tensorflow import compat

from ringmaster import _requests

# For what scripts call inside a tf.function: TensorFlow has nothing to rewrite in it.
as_it_is = tf.autograph.experimental.do_not_convert

_lock = threading.Lock()
_newest_error = None  # that a graph's operation has raised and nobody has asked for


def in_graph():
    """Whether operations are added to a graph now, instead of being executed."""
    return not tf.executing_eagerly()


def call(function, tensors, types, shapes):
    """Tensors of function(arrays), a list of arrays of these types and shapes (None: unknown)."""
    if not in_graph():
        return [tf.convert_to_tensor(result)
                for result in function([array_of(tensor) for tensor in tensors])]
    results = _operation(function, tensors, types)
    for result, shape in zip(results, shapes):
        result.set_shape(shape)
    return results


def _operation(function, tensors, types):

    def called(*arrays):
        with _errors_kept():
            return function([numpy.asarray(array, order="C") for array in arrays])

    if _is_ordered():
        return tf.numpy_function(called, tensors, types)
    return _on_own_thread(called, tensors, types)


def _is_ordered():
    """Whether the graph that is being made runs what is stateful in the order of its making."""
    graph = compat.v1.get_default_graph()
    return graph.building_function


def _on_own_thread(called, tensors, types):
    """A data set of one element, whose threads are its own: TensorFlow waits for its reduction
    without holding a thread of the graph's. (For get_single_element() it would hold one.)
    """
    # An element needs a component, also where nothing goes in.
    inputs = tuple(tensors) or (tf.constant(0, tf.int8),)

    def element(*given):
        return tuple(tf.numpy_function(called, given if tensors else (), types))

    options = tf.data.Options()
    options.threading.private_threadpool_size = 1
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    data = tf.data.Dataset.from_tensors(inputs).map(element).with_options(options)
    nothing = tuple(tf.zeros([], kind) for kind in types)
    return list(data.reduce(nothing, lambda _, *only: only))


def array_of(tensor):
    """What an eager tensor holds, without a copy where TensorFlow lets see it."""
    try:
        return numpy.asarray(memoryview(tensor))
    except (TypeError, ValueError, BufferError):  # on another device, or a type of its own
        return numpy.asarray(tensor.numpy())


# ---- Errors


@contextlib.contextmanager
def _errors_kept():
    """TensorFlow makes one of its own of what is raised here; kept is what it was."""
    global _newest_error
    try:
        yield
    except BaseException as error:
        with _lock:
            _newest_error = error
        if isinstance(error, Exception) and not isinstance(error, SystemExit):
            raise
        raise RuntimeError(str(error)) from error


def error_behind(error):
    """What a graph's operation has raised, of which TensorFlow has made `error`; else None."""
    global _newest_error
    with _lock:
        found = _newest_error
        if found is None or str(found) not in str(error):
            return None
        _newest_error = None
        return found


# ---- Names


def name_of(kind, name, process_set):
    """As _requests.full_name; in a graph without a `name` counted within the graph.

    So a function that is traced again (for another shape) asks under the names that it had before,
    and a joiner, which traces it for the first time, under the same.
    """
    if not in_graph():
        return _requests.full_name(kind, name, process_set)
    full = _requests.full_name(kind, name or "graph", process_set)
    number = process_set.number()
    if number and not name:
        full += b".set%d" % number
    count = _count_in_graph(full)
    return full + b".%d" % count if count or not name else full


def _count_in_graph(key):
    graph = compat.v1.get_default_graph()
    with _lock:
        counts = getattr(graph, "_ringmaster_names", None)
        if counts is None:
            counts = graph._ringmaster_names = {}
        counts[key] = counts.get(key, 0) + 1
        return counts[key] - 1
