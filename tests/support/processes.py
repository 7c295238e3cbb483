"""Processes of this machine, as /proc shows them. For tests and benchmarks that kill some and look at the rest."""
import os


def alive(pid):
    """Running, and not a zombie that its parent has yet to collect."""
    try:
        with open("/proc/%d/stat" % pid) as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (OSError, IndexError):
        return False


def with_environment(entry):
    """[(pid, name of the program)] of the living processes that have `entry` (NAME=value) in their environment; None: of all."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open("/proc/%s/environ" % name, "rb") as environ:
                if entry is not None and entry.encode() not in environ.read().split(b"\0"):
                    continue
            with open("/proc/%s/cmdline" % name, "rb") as command:
                program = os.path.basename(command.read().split(b"\0")[0].decode(errors="replace"))
        except OSError:
            continue  # it has ended, or is somebody else's
        if alive(int(name)):
            found.append((int(name), program))
    return found
