"""`horovodrun`: Horovod's launcher, over `ringmaster run`."""

import importlib.util
import os
import shlex
import signal
import sys

import ringmaster
from ringmaster.runner import config_file, options, plan, program
from ringmaster.runner.errors import LaunchError, ProgramMissing

# Exit statuses, as those of `ringmaster`.
USAGE = 2
MACHINE_LACKS = 3


def main(words=None, version=None):
    """The command. `words`: None: of the process. Returns the exit status, if it returns."""
    version = version or "ringmaster %s" % ringmaster.__version__
    try:
        found = _read(sys.argv[1:] if words is None else words, version)
        if found.check_build:
            print(_build(version))
            return 0
        if not found.command:
            raise LaunchError("the command is missing, for example: horovodrun -np 4 python3 "
                              "train.py")
        return _run(found)
    except ProgramMissing as error:
        _say(str(error))
        return MACHINE_LACKS
    except LaunchError as error:
        _say("%s\nTry: horovodrun --help" % error)
        return USAGE
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def _say(text):
    print("horovodrun: " + text, file=sys.stderr, flush=True)


def _read(words, version):
    found = options.parse(words, version)
    if found.config_file:
        from_file = config_file.words(found.config_file)
        try:
            options.parse(from_file, version)
        except LaunchError as error:
            raise LaunchError("--config-file %s: %s" % (found.config_file, error))
        found = options.parse(from_file + words, version)
    return found


def _run(found):
    planned = plan.make(found)
    ringmaster_program = program.find()
    for note in dict.fromkeys(found.notes):
        _say(note)
    environ = dict(os.environ, **planned.environ)
    command = planned.command(ringmaster_program, found.command)
    if found.verbose:
        _say(_shell_words(planned.environ, command))
    sys.stdout.flush()
    # This process becomes `ringmaster run`: exit status, signals and terminal are its own.
    os.execve(ringmaster_program, command, environ)


def _shell_words(environ, command):
    return " ".join(["%s=%s" % (name, shlex.quote(value)) for name, value in environ.items()]
                    + [shlex.quote(word) for word in command])


def _build(version):
    def mark(there):
        return "X" if there else " "

    def has(module):
        return importlib.util.find_spec(module) is not None

    from ringmaster import queries

    missing = set()  # what has been said of the library, which is once enough

    def is_built(name):
        try:
            return getattr(queries, name + "_built")()
        except ImportError as error:  # the library itself is not there
            if str(error) not in missing:
                _say(str(error))
            missing.add(str(error))
            return False

    lines = ["%s:" % version, "", "Available Frameworks:"]
    for name, module in (("TensorFlow", "tensorflow"), ("PyTorch", "torch"), ("MXNet", None)):
        lines.append("    [%s] %s" % (mark(module and has(module)), name))
    lines += ["", "Available Controllers:", "    [ ] MPI", "    [X] Gloo (Ringmaster's own)", "",
              "Available Tensor Operations:"]
    for name in ("NCCL", "DDL", "CCL", "MPI"):
        lines.append("    [%s] %s" % (mark(is_built(name.lower())), name))
    lines.append("    [%s] Gloo (Ringmaster's own)" % mark(is_built("gloo")))
    return "\n".join(lines)
