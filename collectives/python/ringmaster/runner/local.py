"""run(): a function as the workers of a job on this machine, or on several that ssh reaches."""

import os
import re
import secrets
import sys
import tempfile

from ringmaster.runner import children, function, messages, options, plan, program, results
from ringmaster.runner.errors import FunctionError, LaunchError

# What the workers run: the name is the job's, and the package is found where it is found here.
_SCRIPT = """import sys
sys.path[0] = %r
from ringmaster.runner.worker import main
if __name__ == "__main__":
    main(%r)
"""
_LINES_OF_REASON = 40
_MOST_BYTES_TO_HOSTS = 5 << 20  # with base64 and JSON what the run's API server takes at once


def run(func, args=(), kwargs=None, num_proc=1, min_num_proc=None, max_num_proc=None, slots=None,
        reset_limit=None, cooldown_range=None, hosts=None, hostfile=None,
        host_discovery_script=None, start_timeout=None, ssh_port=None, ssh_identity_file=None,
        disable_cache=None, output_filename=None, verbose=None, use_gloo=None, use_mpi=None,
        mpi_args=None, network_interface=None, network_interfaces=None, executable=None, np=None,
        min_np=None, max_np=None, *, env=None, show_output=True):
    """Calls func(*args, **kwargs) on `np` workers of this machine, or of those in `hosts`
    ("a:2,b:2") or `hostfile`, or that `host_discovery_script` prints, with `slots` on a host that
    it says no number of. Returns the list of their values in the order of their ranks.

    Arguments and meaning are those of horovod.run; `np`, `min_np` and `max_np` are other names of
    `num_proc`, `min_num_proc` and `max_num_proc`. With the latter two or a script workers may die
    and are replaced; the list has a value for each rank that there is at the end. `env`: added to
    the workers' environment. `show_output`: whether their output is shown as it comes.

    What a worker raises is raised here: the same exception, whose `__cause__` is a RankError with
    its rank, traceback and, on several machines, host; of several the first. FunctionError: the
    function or an argument can't be sent; to other machines it may have 5 MiB, pickled, and a value
    64 MiB. LaunchError: wrong arguments, or the job failed otherwise. Ctrl-C ends the job.
    """
    settings = _settings(num_proc if np is None else np,
                         min_num_proc if min_np is None else min_np,
                         max_num_proc if max_np is None else max_np, hosts, hostfile,
                         host_discovery_script, slots if host_discovery_script else None,
                         start_timeout, reset_limit, output_filename, verbose, ssh_port,
                         ssh_identity_file)
    if mpi_args:
        raise LaunchError("mpi_args: there is no mpirun that could take them; leave them out")
    _note_without_meaning(verbose, use_mpi=use_mpi, disable_cache=disable_cache,
                          network_interface=network_interface,
                          network_interfaces=network_interfaces,
                          slots=None if host_discovery_script else slots,
                          cooldown_range=cooldown_range)
    planned = plan.make(settings)
    values = launch(func, args, kwargs, planned, executable, env,
                    print_line if show_output else (lambda line: None), print_line, bool(verbose))
    expected = max(values, default=-1) + 1 if planned.elastic else settings.np
    missing = sorted(set(range(expected)) - set(values))
    if missing:
        raise LaunchError("the job ended well, but ranks %s have returned no value: a function must"
                          " not end its process" % ", ".join(map(str, missing)))
    return [values[rank] for rank in sorted(values)]


def _settings(np, min_np, max_np, hosts, hostfile, host_discovery_script, slots, start_timeout,
              reset_limit, output_filename, verbose, ssh_port, ssh_identity_file):
    """The arguments as the options of horovodrun that they are, so that they are checked alike."""
    words = []
    for option, value in (("--np", np), ("--min-np", min_np), ("--max-np", max_np),
                          ("--hosts", hosts), ("--hostfile", hostfile),
                          ("--host-discovery-script", host_discovery_script),
                          ("--slots-per-host", slots),
                          ("--start-timeout", start_timeout), ("--reset-limit", reset_limit),
                          ("--output-filename", output_filename), ("--ssh-port", ssh_port),
                          ("--ssh-identity-file", ssh_identity_file)):
        if value is not None:
            words.append("%s=%s" % (option, value))
    return options.parse(words + (["--verbose"] if verbose else []), "")


def _note_without_meaning(verbose, **given):
    names = [name for name, value in given.items() if value]
    if verbose and names:
        print_line("run: without meaning here: " + ", ".join(names))


def print_line(line):
    """To sys.stdout, whatever that is: a notebook's is no file."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def launch(func, args, kwargs, planned, executable, env, on_line, on_log, verbose):
    """{rank: value} of a job on this machine or several. `on_line` gets each line of output,
    `on_log` what log_to_driver() sends.
    """
    ringmaster_program = program.find()
    packed = function.pack(func, args, kwargs, [path or os.getcwd() for path in sys.path])
    python = executable or sys.executable
    with tempfile.TemporaryDirectory(prefix="ringmaster-run-") as folder:
        script = _write(folder, packed, function.name_of(func))
        token = secrets.token_hex(8)
        environ = dict(os.environ, **planned.environ)
        environ.update((name, str(value)) for name, value in (env or {}).items())
        environ[messages.TOKEN] = token
        # Lines come as they are printed: the workers' output is no terminal.
        environ.setdefault("PYTHONUNBUFFERED", "1")
        if planned.elsewhere:
            command = planned.command(ringmaster_program,
                                      [python, "-m", "ringmaster.runner.worker"])
            command[2:2] = ["--carry", _checked(os.path.join(folder, "call"), packed, func)]
        else:
            command = planned.command(ringmaster_program, [python, script])
        command[2:2] = ["--plain"]
        receiver = messages.Receiver(token, on_line, on_log)
        status, lines = _follow(command, environ, receiver, verbose)
        values = results.of_messages(receiver) if planned.elsewhere else \
            results.of_folder(os.path.join(folder, "results"))
        if status != 0:
            raise LaunchError(_reason(status, lines))
        return values


def _checked(path, packed, func):
    if len(packed) > _MOST_BYTES_TO_HOSTS:
        raise FunctionError("%s with its arguments has %d bytes, allowed to other machines are %d: "
                            "read data from a file inside the function" %
                            (function.name_of(func), len(packed), _MOST_BYTES_TO_HOSTS))
    return path


def _write(folder, packed, name):
    os.mkdir(os.path.join(folder, "results"))
    with open(os.path.join(folder, "call"), "wb") as file:
        file.write(packed)
    script = os.path.join(folder, re.sub(r"\W", "", name) + ".py")
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    with open(script, "w") as file:
        file.write(_SCRIPT % (package, folder))
    return script


def _follow(command, environ, receiver, verbose):
    """Exit status, and the last lines."""
    if verbose:
        print_line("run: " + " ".join(command))
    last = []

    def take(line):
        last.append(line)
        del last[:-_LINES_OF_REASON]
        receiver.take(line)

    with children.Streaming(command, environ) as streaming:
        try:
            for line in streaming.lines():
                take(line)
        except KeyboardInterrupt:
            print_line("run: interrupted; ending the job")
            streaming.stop(take)
            raise
        return streaming.wait(), last


def _reason(status, lines):
    """What `ringmaster run` says at its end of why the job failed."""
    for number, line in enumerate(lines):
        if line.startswith("ringmaster: "):
            return "\n".join(lines[number:])[len("ringmaster: "):]
    return "\n".join(["the job ended with exit status %d" % status] + lines[-5:])
