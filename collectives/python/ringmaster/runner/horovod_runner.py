"""HorovodRunner: a function of a notebook as a training job, here or on a cluster."""

import re

from ringmaster.runner import cluster, local, options, plan
from ringmaster.runner.errors import LaunchError

_VERBOSITIES = ("log_callback_only", "all")
# What `ringmaster run` says of the job's course, beside what workers print: "   3.1s  view 1.1: "
_PROGRESS = re.compile(r" *\d+\.\d+s  ")


class HorovodRunner:
    """Runs a function on several workers and returns what rank 0 returns.

    np: below 0: so many workers on this machine, -4 are four. Above 0: so many on a cluster, as a
    HorovodJob. driver_log_verbosity: "all" shows what the workers print, "log_callback_only" only
    what they say by log_to_driver(), and how the job goes.

    Of a job on a cluster (np > 0):
      image: has Python of this version and what the function imports; Ringmaster's own parts are
        put there. Required.
      namespace, kubeconfig, context: where; None: as the command `ringmaster` takes them
      slots: workers in a pod; np is a multiple of it
      min_np: with fewer workers the others wait; None: np
      python: the interpreter in the image
      resources: {"nvidia.com/gpu": 1, "memory": "8Gi"}: limits of a pod
      pod, container: further fields of the pod's spec (nodeSelector, volumes, ...) and of the
        worker's container (volumeMounts, ...), as in a manifest
      timeout: seconds after which the job fails
    env is added to the workers' environment, wherever they run.

    ValueError: a wrong argument.
    """

    def __init__(self, np, driver_log_verbosity="log_callback_only", *, image=None, namespace=None,
                 kubeconfig=None, context=None, slots=1, min_np=None, python="python3",
                 resources=None, env=None, pod=None, container=None, timeout=None):
        if not isinstance(np, int) or isinstance(np, bool) or np == 0:
            raise ValueError("np: is %r, must be a whole number: below 0 for workers on this "
                             "machine, above 0 for workers on a cluster" % (np,))
        if driver_log_verbosity not in _VERBOSITIES:
            raise ValueError("driver_log_verbosity: is %r, allowed are %s" %
                             (driver_log_verbosity, " and ".join(_VERBOSITIES)))
        on_cluster = {"image": image, "namespace": namespace, "kubeconfig": kubeconfig,
                      "context": context, "resources": resources, "pod": pod,
                      "container": container, "timeout": timeout}
        if np < 0:
            _refuse_given(on_cluster)
        self._np, self._all, self._env = np, driver_log_verbosity == "all", env
        self._min_np = min_np
        if min_np is not None and not 1 <= min_np <= abs(np):
            raise ValueError("min_np: is %r, allowed are 1 to %d" % (min_np, abs(np)))
        if np > 0:
            self._place = cluster.Place(kubeconfig, context, namespace)
            self._shape = _shape(np, min_np, slots, image, python, env, resources, pod, container,
                                 timeout)

    def run(self, main, **kwargs):
        """Calls main(**kwargs) on all workers; rank 0's value.

        What a rank raises is raised again, as in run(). FunctionError: main, an argument or the
        value can't be sent. Of a job on a cluster function, arguments and the modules beside the
        function's file may have 1 MiB, compressed, and the value 4 MiB. LaunchError: the job
        failed otherwise. However it ends, Ctrl-C included, nothing of it stays.
        """
        if self._np > 0:
            return self._run_on_cluster(main, kwargs)
        words = ["-np", str(-self._np)]
        if self._min_np:
            words += ["--min-np", str(self._min_np)]
        values = local.launch(main, (), kwargs, plan.make(options.parse(words, "")), None,
                              self._env, self._show, local.print_line, False)
        if 0 not in values:
            raise LaunchError("rank 0 has returned no value: a function must not end its process")
        return values[0]

    def _run_on_cluster(self, main, kwargs):
        on_line = local.print_line if self._all else (lambda line: None)
        with cluster.Job(main, kwargs, self._place, self._shape, on_line, local.print_line,
                         _say) as job:
            return job.value()

    def _show(self, line):
        if self._all or _PROGRESS.match(line):
            local.print_line(line)


def _say(text):
    local.print_line("HorovodRunner: " + text)


def _refuse_given(arguments):
    for name, value in arguments.items():
        if value is not None:
            raise ValueError("%s: is for workers on a cluster, np > 0" % name)


def _shape(np, min_np, slots, image, python, env, resources, pod, container, timeout):
    if not image:
        raise ValueError("image: is missing: np > 0 needs a container image that has Python and "
                         "what the function imports; np=-%d runs on this machine" % np)
    if not isinstance(slots, int) or slots < 1 or np % slots or (min_np or np) % slots:
        raise ValueError("slots: is %r, np and min_np must be multiples of it" % (slots,))
    for name, fields, own in (("pod", pod, ("containers",)),
                              ("container", container, ("name", "image", "command", "args"))):
        for field in own:
            if field in (fields or {}):
                raise ValueError("%s: %s is set by HorovodRunner" % (name, field))
    container = dict(container or {})
    if resources:
        limits = {name: str(amount) for name, amount in resources.items()}
        container["resources"] = {**container.get("resources", {}), "limits": limits}
    return cluster.Shape(np, min_np or np, slots, image, python, env, pod, container, timeout)
