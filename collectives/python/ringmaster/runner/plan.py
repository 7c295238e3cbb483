"""What `ringmaster run` is asked for: its words and what the workers find in their environment."""

import os
from collections import namedtuple

from ringmaster.runner import hosts
from ringmaster.runner.errors import LaunchError

# Of a job whose discovery script alone bounds it: the most pods that `ringmaster run` takes.
UNBOUNDED = 1024


class Plan(namedtuple("Plan", "words environ np min_np max_np elastic elsewhere")):
    """`words`: of `ringmaster run`, without the command. `environ`: added to the environment.
    `elsewhere`: workers may be on other machines.
    """

    def command(self, program, command):
        """The whole command line."""
        words = [program, "run", "-np", str(self.np)]
        if self.elastic:
            words += ["--min-np", str(self.min_np), "--max-np", str(self.max_np)]
        return words + self.words + ["--", *command]


def make(found):
    """The plan of a parsed command line (options.parse), or of anything with its attributes."""
    if found.np is None:
        raise LaunchError("-np N is missing: how many workers?")
    elastic = any((found.min_np, found.max_np, found.host_discovery_script))
    if found.slots and not found.host_discovery_script:
        raise LaunchError("--slots-per-host goes with --host-discovery-script")
    named = _hosts(found)
    others = hosts.elsewhere(named) if named else []
    slots = hosts.slots_of(named) if named else None
    max_np = found.max_np or (UNBOUNDED if found.host_discovery_script else found.np)
    min_np = found.min_np or found.np
    if min_np > found.np:
        raise LaunchError("--min-np %d is more than -np %d" % (min_np, found.np))
    if max_np < found.np:
        raise LaunchError("--max-np %d is less than -np %d" % (max_np, found.np))
    if slots is not None and slots < found.np:
        raise LaunchError("-np %d: the hosts have %d slots; give them more (-H localhost:%d), or "
                          "start fewer workers" % (found.np, slots, found.np))
    if slots is not None and elastic:
        max_np = min(max_np, slots)
    words = _words(found)
    if found.host_discovery_script:
        words += _script_words(found)
    elif others:
        words += ["--hosts", hosts.to_option(named)]
    elsewhere = bool(others or found.host_discovery_script)
    if elsewhere:
        words += _ssh_words(found)
    else:
        found.notes += ["%s has no meaning here: workers on this machine are started without ssh" %
                        name for name, value in (("-p", found.ssh_port),
                                                 ("-i", found.ssh_identity_file)) if value]
    return Plan(words, _environ(found), found.np, min_np, max_np, elastic, elsewhere)


def _hosts(found):
    """[(name, slots)]; None: nothing was said, or the script says it later."""
    if found.hosts and found.hostfile:
        raise LaunchError("-H and --hostfile: give one of them")
    if found.hosts:
        return hosts.from_option(found.hosts)
    if found.hostfile:
        return hosts.from_file(found.hostfile)
    return None


def _script_words(found):
    words = ["--host-discovery-script", found.host_discovery_script]
    return words + (["--slots-per-host", str(found.slots)] if found.slots else [])


def _ssh_words(found):
    words = []
    if found.ssh_port:
        words += ["--ssh-port", str(found.ssh_port)]
    if found.ssh_identity_file:
        words += ["--ssh-identity-file", found.ssh_identity_file]
    return words


def _words(found):
    words = []
    if found.start_timeout is not None:
        words += ["--init-timeout", str(found.start_timeout)]
    if found.reset_limit is not None:
        words += ["--backoff-limit", str(found.reset_limit)]
    if found.fusion_threshold_mb is not None:
        words += ["--fusion-threshold", str(found.fusion_threshold_mb << 20)]
    if found.output_filename:
        words += ["--output-filename", found.output_filename]
    return words


def _environ(found):
    environ = {}
    if found.timeline_filename:
        timeline = found.timeline_filename
        # Workers start where the command does, but a script may change its directory.
        environ["HOROVOD_TIMELINE"] = timeline if timeline == "DYNAMIC" else \
            os.path.abspath(timeline)
    if found.stall_check is not None:
        environ["HOROVOD_STALL_CHECK_DISABLE"] = "0" if found.stall_check else "1"
    if found.stall_check_warning_time_seconds is not None:
        environ["HOROVOD_STALL_CHECK_TIME_SECONDS"] = str(found.stall_check_warning_time_seconds)
    if found.stall_check_shutdown_time_seconds is not None:
        environ["HOROVOD_STALL_SHUTDOWN_TIME_SECONDS"] = str(
            found.stall_check_shutdown_time_seconds)
    if found.tcp:
        environ["RINGMASTER_SHM"] = "0"
    return environ
