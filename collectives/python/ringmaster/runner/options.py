"""The options of horovodrun: what each one is here.

An option that has no meaning here is taken and said so in one line; one whose purpose can't be met
is refused, with the way out.
"""

import argparse
import difflib

from ringmaster.runner.errors import LaunchError

_AS_WRITTEN = "lines of workers are shown as they were written, with the worker's number in front"
_HIERARCHY = "collectives go through shared memory within a pod first, then between pods"
_NOTHING_TO_TUNE = "there is nothing to tune"
# Taken, and without effect: (names, type, why). A type of None is a flag.
WITHOUT_MEANING = (
    (("--gloo",), None, None),  # what Ringmaster's collectives are like: nothing to say
    (("--mpi",), None, "Ringmaster starts the workers itself and needs no MPI. Where MPI owns the "
     "fast network, start the script by mpirun with RINGMASTER_BACKEND=mpi instead"),
    (("--disable-cache",), None, "there are no checks of hosts whose result could be kept"),
    (("--network-interfaces", "--network-interface"), str,
     "workers on one machine speak over shared memory and loopback, those of several by the "
     "addresses by which ssh reaches the machines"),
    (("--cycle-time-ms",), float, "an operation starts when all ranks have asked for it: there are "
     "no cycles"),
    (("--cache-capacity",), int, "what the ranks have agreed on is remembered as long as they use "
     "it"),
    (("--hierarchical-allreduce", "--no-hierarchical-allreduce"), None, _HIERARCHY),
    (("--hierarchical-allgather", "--no-hierarchical-allgather"), None, _HIERARCHY),
    (("--torus-allreduce", "--no-torus-allreduce"), None,
     "NCCL chooses by itself how tensors on GPUs are reduced"),
    (("--autotune",), None, _NOTHING_TO_TUNE),
    (("--no-autotune",), None, None),
    (("--autotune-log-file",), str, _NOTHING_TO_TUNE),
    (("--autotune-warmup-samples", "--autotune-steps-per-sample",
      "--autotune-bayes-opt-max-samples"), int, _NOTHING_TO_TUNE),
    (("--autotune-gaussian-process-noise",), float, _NOTHING_TO_TUNE),
    (("--elastic-timeout",), int, "the others train on while a worker comes or goes, so nobody "
     "waits for a new world; how long the first one may take is --start-timeout"),
    (("--blacklist-cooldown-range",), "range", "how long a host that fails is left out is fixed: 10 s, then longer, up to 300 s"),
    (("--timeline-mark-cycles", "--no-timeline-mark-cycles"), None,
     "a timeline always shows the rounds of negotiation"),
    (("--mpi-threads-disable",), None, "there is no MPI"),
    (("--no-mpi-threads-disable",), None, None),
    (("--binding-args",), str, "workers are not bound to processors"),
    (("--num-nccl-streams",), int, "NCCL runs on one stream of its own in each worker"),
    (("--thread-affinity",), int, "threads are not bound to processors"),
    (("--gloo-timeout-seconds",), int, "Gloo is not used; a rank that others wait for is reported, "
     "see --stall-check-warning-time-seconds"),
    (("--log-level",), ("TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "FATAL"),
     "what the workers' library has to say is little, and always said"),
    (("--log-with-timestamp", "--no-log-hide-timestamp"), None, _AS_WRITTEN),
    (("--log-without-timestamp", "--no-log-with-timestamp", "--log-hide-timestamp"), None,
     _AS_WRITTEN),
    (("-prefix-timestamp", "--prefix-output-with-timestamp"), None, _AS_WRITTEN),
)

# Refused: (names, whether a value follows, why and the way out).
REFUSED = (
    (("--jsrun",), False, "jsrun is not used; leave it out, or use --gloo"),
    (("--mpi-args",), True, "there is no mpirun that could take them. Leave them out; workers have "
     "the environment of horovodrun, so `-x NAME` is not needed"),
)


class _Parser(argparse.ArgumentParser):

    def error(self, message):
        raise LaunchError(message)


class _WithoutMeaning(argparse.Action):
    """Remembers that the option was given, for the line that says why it changes nothing."""

    def __init__(self, *args, why=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.why = why

    def __call__(self, parser, namespace, values, option_string=None):
        if self.why:
            namespace.notes.append("%s has no meaning here: %s" % (option_string, self.why))


class _Refused(argparse.Action):

    def __init__(self, *args, why=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.why = why

    def __call__(self, parser, namespace, values, option_string=None):
        raise LaunchError("%s: %s" % (option_string, self.why))


def _at_least(least):

    def read(text):
        number = int(text)
        if number < least:
            raise argparse.ArgumentTypeError("is %d, must be at least %d" % (number, least))
        return number

    read.__name__ = "whole number"
    return read


def _megabytes(text):
    number = int(text)
    if not 0 <= number <= 1024:
        raise argparse.ArgumentTypeError("is %d MB, allowed are 0 to 1024" % number)
    return number


def parser(version):
    """The parser of horovodrun's words. `version`: what --version prints."""
    made = _Parser(
        prog="horovodrun", allow_abbrev=False, usage="horovodrun -np N [OPTIONS] COMMAND [ARGS...]",
        description="Runs COMMAND as N workers, with Horovod's options. "
        "docs/horovod.md says of every option what it means here.",
        epilog="Exit status: 0 done, 1 the job failed, 2 bad usage, 3 the machine lacks something, "
        "130 interrupted.")
    made.set_defaults(notes=[])
    add = made.add_argument
    add("-v", "--version", action="version", version=version)
    add("-cb", "--check-build", action="store_true", help="show what is there, and end")
    add("--verbose", action="store_true", help="show the command that is run")
    add("-np", "--np", "--num-proc", dest="np", type=_at_least(1), metavar="N",
        help="workers to start with")
    elastic = made.add_argument_group("elastic training").add_argument
    elastic("--min-np", "--min-num-proc", dest="min_np", type=_at_least(1), metavar="N",
            help="with fewer workers the others wait (default: -np)")
    elastic("--max-np", "--max-num-proc", dest="max_np", type=_at_least(1), metavar="N",
            help="never more workers than this (default: -np, or what the discovery script allows)")
    elastic("--reset-limit", type=_at_least(0), metavar="N",
            help="fail after more than N faults of workers (default: 6)")
    elastic("--slots-per-host", dest="slots", type=_at_least(1), metavar="N",
            help="slots of a host of which the discovery script says no number")
    hosts = made.add_argument_group("hosts").add_mutually_exclusive_group().add_argument
    hosts("-H", "--hosts", metavar="HOST:SLOTS,...", help="machines that run workers: this one, "
          "or those that ssh reaches without a question")
    hosts("-hostfile", "--hostfile", metavar="FILE", help="the same, as lines `HOST slots=N`")
    hosts("--host-discovery-script", metavar="FILE",
          help="prints HOST:SLOTS; asked every second, workers come and go with the slots")
    add("-p", "--ssh-port", type=_at_least(1), metavar="PORT", help="port of the hosts' sshd")
    add("-i", "--ssh-identity-file", metavar="FILE", help="key for the hosts")
    _add_others(made)
    made.add_argument("command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return made


def _add_others(made):
    add = made.add_argument
    add("--start-timeout", type=_at_least(1), metavar="SECONDS",
        help="fail when not all workers have called init() by then (default: 600)")
    add("--output-filename", metavar="DIR",
        help="keep what each worker prints in DIR/rank.N/stdout and DIR/rank.N/stderr")
    add("--timeline-filename", metavar="FILE", help="record a timeline of each rank")
    add("--fusion-threshold-mb", type=_megabytes, metavar="MB",
        help="fuse small tensors into buffers of this size; 0 fuses none (default: 64)")
    add("--no-stall-check", dest="stall_check", action="store_false", default=None,
        help="report no rank that others wait for")
    add("--stall-check", dest="stall_check", action="store_true", help=argparse.SUPPRESS)
    add("--stall-check-warning-time-seconds", type=_at_least(0), metavar="SECONDS",
        help="report a rank that others wait for after so long (default: 60)")
    add("--stall-check-shutdown-time-seconds", type=_at_least(0), metavar="SECONDS",
        help="fail when others have waited so long for a rank (default: 0, never)")
    add("--tcp", action="store_true", help="no shared memory between workers")
    add("--config-file", metavar="FILE", help="read options from a YAML file; those of the command "
        "line win")
    for names, kind, why in WITHOUT_MEANING:
        takes = {"nargs": 0} if kind is None else {"nargs": 2, "type": int} if kind == "range" \
            else {"choices": kind} if isinstance(kind, tuple) else {"type": kind}
        add(*names, action=_WithoutMeaning, why=why, dest="without_meaning",
            default=argparse.SUPPRESS, help=argparse.SUPPRESS, **takes)
    for names, takes_value, why in REFUSED:
        add(*names, action=_Refused, why=why, nargs=None if takes_value else 0, dest="refused",
            default=argparse.SUPPRESS, help=argparse.SUPPRESS)


def parse(words, version):
    """The words of a command line as a namespace; LaunchError where they are wrong.

    `notes` of it: the lines that say which options change nothing.
    """
    made = parser(version)
    found, unknown = made.parse_known_args(words)
    if found.command and found.command[0] == "--":
        del found.command[0]
    elif found.command and found.command[0].startswith("-"):
        unknown.append(found.command[0])
    if unknown:
        name = unknown[0].split("=")[0]
        near = difflib.get_close_matches(name, made._option_string_actions, 1)
        raise LaunchError("there is no option %s%s" %
                          (name, "; did you mean %s?" % near[0] if near else ""))
    return found
