"""Gradients of several backward passes that add up before they are reduced and applied."""

import weakref

import tensorflow as tf
from tensorflow import compat

from ringmaster import elastic
from ringmaster.tensorflow.reducing import identity


class Accumulation:
    """Of one optimizer. Its variables are made at the first gradients.

    Whenever an elastic training function is entered, or goes on in place with a joiner, it begins
    anew on all ranks: a joiner has added up nothing.
    """

    def __init__(self, passes, average):
        self._passes = passes
        self._average = average
        self._known = {}  # the variables of the first pass, by identity
        self._sums = {}  # of those that have had a gradient, by identity
        self._added = set()  # in eager mode: which of them have had one since the last application
        self._count = None
        begin = weakref.WeakMethod(self._begin_anew)
        elastic.on_begin_sums(lambda: (begin() or (lambda: None))())

    def _begin_anew(self):
        if self._count is None:
            return
        self._added.clear()
        if tf.executing_eagerly():
            for variable in self._variables():
                variable.assign(tf.zeros_like(variable))
            return
        session = _session()
        if session is not None and session.graph is self._count.graph:  # else that graph is over
            self.initialize(session)

    def initialize(self, session):
        """Of tf.compat.v1. All are zero then."""
        session.run([variable.initializer for variable in self._variables()])

    def _variables(self):
        return [*self._sums.values(), self._count]

    def step(self, gradients, variables, apply, skip):
        """apply(sums of `variables`) in every `passes`th call, else skip(). Both return what a graph
        of tf.compat.v1 has to run, elsewhere nothing. What a variable has added up that is missing
        in that call, or in a graph has no gradient in it, waits for the next one that has it: in a
        graph all ranks must apply the same, in whatever order they trace. ValueError: a variable is
        none of the first call's, so that no call might ever apply what all have added up.

        Returns what a graph has to run (an operation, None in eager mode).
        """
        self._make_missing(gradients, variables)
        keys = [identity(variable) for variable in variables]
        with_gradient = {key for key, gradient in zip(keys, gradients) if gradient is not None}
        added = [self._sums[key].assign_add(tf.convert_to_tensor(gradient))
                 for key, gradient in zip(keys, gradients) if gradient is not None]
        if tf.executing_eagerly():
            self._added |= with_gradient
        applied_now = self._added if tf.executing_eagerly() else with_gradient
        totals = [self._sums[key] if key in applied_now else None for key in keys]
        with tf.control_dependencies(added or None):
            count = self._count.assign_add(1)

        def all_of_them():
            divisor = self._passes if self._average else 1
            sums = [None if total is None else total.read_value() / divisor for total in totals]
            applied = apply(sums)
            with tf.control_dependencies([] if applied is None else [applied]):
                done = [total.assign(tf.zeros_like(total)) for total in totals
                        if total is not None]
                self._added.difference_update(keys)
                return self._read(done + [self._count.assign(0)])

        def not_yet():
            skipped = skip()
            return self._read([] if skipped is None else [skipped])

        return tf.cond(tf.convert_to_tensor(count) >= self._passes, all_of_them, not_yet)

    @staticmethod
    def _read(after):
        with tf.control_dependencies(after):
            return tf.constant(True)

    def _make_missing(self, gradients, variables):
        first = self._count is None
        for gradient, variable in zip(gradients, variables):
            key = identity(variable)
            if first:
                self._known[key] = variable  # kept alive, so that nothing else gets its identity
            elif key not in self._known:
                raise ValueError("variables: has %s, which the first of the passes had not: "
                                 "backward_passes_per_step adds up gradients of the same variables"
                                 % getattr(variable, "name", variable))
            if gradient is not None and key not in self._sums:
                with tf.init_scope():
                    self._sums[key] = tf.Variable(tf.zeros(variable.shape, gradient.dtype),
                                                  trainable=False)
        if first:
            self._make_count()

    def _make_count(self):
        with tf.init_scope():
            self._count = tf.Variable(0, dtype=tf.int64, trainable=False)
            if not tf.executing_eagerly():
                # A script may let go of the optimizer, whose operations the graph goes on to run.
                graph = self._count.graph
                graph._ringmaster_keeps = [*getattr(graph, "_ringmaster_keeps", ()), self]


def _session():
    """Of tf.compat.v1: the default one, else Keras 2's own. None: only the script knows which."""
    backend = compat.v1.keras.backend
    own = getattr(backend, "get_session", lambda: None)
    return compat.v1.get_default_session() or own()
