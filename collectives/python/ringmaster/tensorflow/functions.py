"""Broadcasts of variables and objects, and the hook by which a MonitoredSession makes one."""

import tensorflow as tf

from ringmaster import _core, _requests, arrays
from ringmaster._objects import allgather_object as _allgather_object
from ringmaster._objects import broadcast_object as _broadcast_object
from ringmaster.process_sets import global_process_set
from ringmaster.tensorflow.calling import as_it_is, call, in_graph, name_of

__all__ = ["BroadcastGlobalVariablesHook", "allgather_object", "broadcast_global_variables",
           "broadcast_object", "broadcast_object_fn", "broadcast_variables"]


@as_it_is
def broadcast_variables(variables, root_rank, process_set=global_process_set, inplace=False):
    """Makes the variables of all ranks the root's, in one operation for all of them.

    `variables`: tf.Variables or Keras's, in the same order on all ranks. In a graph of tf.compat.v1
    it returns the operation to run. A joiner gets its variables with the rest of its state when it
    enters the world: nothing is sent for it. `inplace` is for Horovod's scripts: it always is.
    """
    del inplace
    updates = broadcast_in_place(list(variables), root_rank, None, process_set)
    return tf.group(*updates) if in_graph() else None


def broadcast_in_place(variables, root_rank, name, process_set):
    if not variables:
        return []
    base = name_of("variables", name or "all", process_set)

    def function(given):
        if _core.is_joining():
            return given
        root = _core.worker_at(root_rank)
        names = _requests.in_group(base, len(given))
        return arrays.start_broadcasts(given, root, names, process_set).wait()

    values = [tf.convert_to_tensor(variable) for variable in variables]
    received = call(function, values, [value.dtype for value in values],
                    [value.shape for value in values])
    return [variable.assign(value) for variable, value in zip(variables, received)]


def broadcast_global_variables(root_rank):
    """The operation that makes all global variables of a graph of tf.compat.v1 the root's.

    RuntimeError in eager mode, which has no global variables: broadcast_variables() does it there.
    """
    if tf.executing_eagerly():
        raise RuntimeError("broadcast_global_variables() needs a graph of tf.compat.v1; in eager "
                           "mode call broadcast_variables(model.variables, root_rank)")
    return broadcast_variables(tf.compat.v1.global_variables(), root_rank)


class BroadcastGlobalVariablesHook(tf.compat.v1.train.SessionRunHook):
    """Makes all global variables the root's when a session of tf.compat.v1 has been created:
    MonitoredTrainingSession(hooks=[BroadcastGlobalVariablesHook(0)]). `device` is not used.
    """

    def __init__(self, root_rank, device=""):
        super().__init__()
        self.root_rank = root_rank
        self.device = device
        self.bcast_op = None

    def begin(self):
        if self.bcast_op is None or self.bcast_op.graph != tf.compat.v1.get_default_graph():
            self.bcast_op = broadcast_global_variables(self.root_rank)

    def after_create_session(self, session, coord):
        session.run(self.bcast_op)


# ---- Objects. They travel beside TensorFlow: `session` is for Horovod's scripts.


def broadcast_object(obj, root_rank=0, session=None, name=None, process_set=global_process_set):
    """The root's object on every rank; it must be picklable.

    A joiner gets its own back: state comes as it enters.
    """
    del session
    return obj if _core.is_joining() else _broadcast_object(obj, root_rank, name, process_set)


def broadcast_object_fn(root_rank=0, session=None, name=None, process_set=global_process_set):
    """A function that calls broadcast_object() with these arguments."""
    return lambda obj: broadcast_object(obj, root_rank, session, name, process_set)


def allgather_object(obj, session=None, name=None, process_set=global_process_set):
    """A list with the object of each rank of the set, in rank order."""
    del session
    return _allgather_object(obj, name, process_set)
