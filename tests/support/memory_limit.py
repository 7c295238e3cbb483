"""A cgroup of a test's own: of the processes in it that take more memory together than it allows, the kernel kills one.

    with MemoryLimit(64 << 20) as limit:
        limit.take(pid)          # what it takes from now on counts; what its children take, too
        ... limit.kills()        # how many processes the kernel has killed for it"""

import os
import pathlib

from waiting import until

ROOT = pathlib.Path("/sys/fs/cgroup")


def missing():
    """Why there can be none here; empty if there can."""
    if os.geteuid() != 0:
        return "a memory limit needs root"
    if _tree() is None:
        return "this machine has no cgroups for memory in " + str(ROOT)
    return "" if os.access(_tree(), os.W_OK) else "%s can't be written to" % _tree()


def _tree():
    if (ROOT / "memory/memory.limit_in_bytes").exists():
        return ROOT / "memory"  # version 1
    control = ROOT / "cgroup.subtree_control"
    return ROOT if control.exists() and "memory" in control.read_text().split() else None


class MemoryLimit:
    def __init__(self, size):
        self.path = _tree() / ("ringmaster-test-%d-%d" % (os.getpid(), id(self)))
        self.size = size

    def __enter__(self):
        self.path.mkdir()
        first = self.path / "memory.limit_in_bytes"
        self.version = 1 if first.exists() else 2
        (first if self.version == 1 else self.path / "memory.max").write_text(str(self.size))
        swap = self.path / "memory.swap.max"
        if swap.exists():
            swap.write_text("0")
        return self

    def __exit__(self, *_):
        for pid in (self.path / "cgroup.procs").read_text().split():
            os.kill(int(pid), 9)

        def removed():
            try:
                self.path.rmdir()
            except OSError:
                return False
            return True
        assert until(removed, 30, 0.02), "%s does not get empty" % self.path

    def take(self, pid):
        (self.path / "cgroup.procs").write_text(str(pid))

    def kills(self):
        text = (self.path / ("memory.oom_control" if self.version == 1 else "memory.events")).read_text()
        return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("oom_kill "))
