"""A "machine": namespaces of its own (network, mounts, processes, host name, IPC), begun by machine-init.sh as PID 1.

Nothing of it has a name in the system's own namespaces, so a machine is gone as soon as its PID 1 is: the kernel ends
its processes and takes its mounts and links along. Only its cgroups must be removed by hand.
"""
import os
import signal
import subprocess

from processes import alive, with_environment

from . import layout
from .common import Trouble, lacks, run, tail, wait_until

MARK = "RINGMASTER_CLUSTER_DIR"  # in the environment of everything that belongs to a cluster
NAMESPACES = ["-m", "-u", "-i", "-n", "-p"]
CGROUPS = "/sys/fs/cgroup"


def _children(pid):
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def marked(directory):
    """Process ids of everything that carries the mark of the cluster in `directory`, wherever an earlier run was killed."""
    return [pid for pid, _ in with_environment("%s=%s" % (MARK, directory)) if pid != os.getpid()]


def kill_marked(directory):
    """Ends everything of the cluster in `directory`; PID namespaces take along what doesn't carry the mark (containers)."""

    def none_left():
        pids = marked(directory)
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return not pids

    wait_until("the cluster's processes to end", none_left, 30)


def power_off(machines):
    """A power cut of all of them at the same moment, and until nothing is left of what ran."""
    pids = {each.name: each.pid for each in machines}
    for pid in filter(None, pids.values()):
        os.kill(pid, signal.SIGKILL)
    for each in machines:
        pid = pids[each.name]
        if pid is not None:
            wait_until("the processes of %s to end" % each.name, lambda: not alive(pid), 20)
        if os.path.exists(each.path("init.pid")):
            os.unlink(each.path("init.pid"))
        remove_cgroups(each.cgroup)


class Machine:
    def __init__(self, where, name):
        self.layout = where
        self.name = name
        self.cgroup = "%s/%s" % (where.id, name)

    def path(self, *parts):
        return self.layout.machine(self.name, *parts)

    def log(self, program):
        return self.path("logs", program + ".log")

    @property
    def pid(self):
        """PID 1 of the machine as the system sees it; None while the machine is off."""
        try:
            with open(self.path("init.pid")) as file:
                pid = int(file.read())
        except (OSError, ValueError):
            return None
        try:
            with open("/proc/%d/environ" % pid, "rb") as file:
                mine = ("%s=%s" % (MARK, self.layout.dir)).encode() in file.read().split(b"\0")
        except OSError:
            return None
        return pid if mine and alive(pid) else None

    def need_pid(self):
        pid = self.pid
        if pid is None:
            raise Trouble("%s is off (boot it first)" % self.name)
        return pid

    def power_on(self):
        """Makes the namespaces. What the machine has on disk (images, the kubelet's state) is still there after a crash."""
        for part in ("logs", "programs", "var/lib", "var/log", "var/cache", "var/tmp", "cni"):
            os.makedirs(self.path(part), exist_ok=True)
        run("rm", "-rf", self.path("run"), self.path("ready"), self.path("programs"))
        os.makedirs(self.path("run", "lock"))
        os.makedirs(self.path("programs"))
        if not os.path.islink(self.path("var/run")):
            os.symlink("/run", self.path("var/run"))
        self._make_cgroups()
        with open(self.log("machine"), "a") as log:
            outer = subprocess.Popen(
                ["unshare", "--mount", "--uts", "--ipc", "--net", "--pid", "--fork", "--mount-proc", "bash",
                 os.path.join(layout.HERE, "machine-init.sh"), self.name, self.path()],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/",
                env=dict(os.environ, **{MARK: self.layout.dir}))

        def ready():
            if outer.poll() is not None:
                raise Trouble("%s did not start: %s" % (self.name, tail(self.log("machine"))))
            return os.path.exists(self.path("ready"))

        wait_until("the namespaces of %s" % self.name, ready, 20, period=0.02)
        layout.write(self.path("init.pid"), "%d\n" % _children(outer.pid)[0])

    def power_off(self):
        """A power cut: nothing gets a chance to say goodbye."""
        power_off([self])

    def enter(self, *argv, namespaces=None):
        """The command line that runs argv inside the machine."""
        return ["nsenter", "-t", str(self.need_pid()), *(namespaces or NAMESPACES), "--", *argv]

    def run(self, *argv, **options):
        return run(*self.enter(*argv), **options)

    def net(self, *argv, **options):
        """Runs argv in the machine's network only (its files are the system's)."""
        return run(*self.enter(*argv, namespaces=["-n"]), **options)

    def start(self, program, *argv):
        """Starts a program as a child of the machine's PID 1; it lives until stop() or until the power goes."""
        shell = 'echo $$ >"$0.new" && mv "$0.new" "$0" && exec "$@"'
        with open(self.log(program), "a") as log:
            done = subprocess.run(
                self.enter("setsid", "--fork", "bash", "-c", shell, self.path("programs", program), *map(str, argv)),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", timeout=20,
                env=dict(os.environ, **{MARK: self.layout.dir}))
        if done.returncode != 0:
            raise Trouble("%s did not start on %s: %s" % (program, self.name, tail(self.log(program))))

    def stop(self, program):
        """Kills a program: it gets no chance to say goodbye."""
        if not os.path.exists(self.path("programs", program)):
            return
        if self._alive(program):
            with open(self.path("programs", program)) as file:
                self.run("kill", "-KILL", file.read().strip(), check=False)
        wait_until("%s on %s to end" % (program, self.name), lambda: not self._alive(program), 20, period=0.05)
        os.unlink(self.path("programs", program))  # the next start must not find the dead one's id

    def programs(self):
        """{name: alive} of the programs that were started on the machine."""
        states = {}
        if os.path.isdir(self.path("programs")):
            for name in sorted(os.listdir(self.path("programs"))):
                states[name] = self._alive(name)
        return states

    def _alive(self, program):
        if self.pid is None:
            return False
        with open(self.path("programs", program)) as file:
            return subprocess.run(self.enter("kill", "-0", file.read().strip(), namespaces=["-p"]),
                                  capture_output=True, timeout=20).returncode == 0

    def require_alive(self, program):
        """For waits: a program that died will never become ready, so say at once why."""
        if os.path.exists(self.path("programs", program)) and not self._alive(program):
            raise Trouble("%s on %s ended; the end of %s:\n%s"
                          % (program, self.name, self.log(program), tail(self.log(program))))

    def _make_cgroups(self):
        for root in cgroup_roots():
            path = root
            for part in self.cgroup.split("/"):
                parent, path = path, os.path.join(path, part)
                os.makedirs(path, exist_ok=True)
                if os.path.basename(root) == "cpuset":  # version 1 begins with an empty set
                    for file in ("cpuset.cpus", "cpuset.mems"):
                        with open(os.path.join(parent, file)) as have, open(os.path.join(path, file), "w") as want:
                            want.write(have.read())


# Kubelet and containers of a node live below one cgroup per node, so that two kubelets don't meet.


def cgroup_roots():
    if os.path.exists(CGROUPS + "/cgroup.controllers"):
        return [CGROUPS]  # version 2: one tree
    if not os.path.isdir(CGROUPS):
        return []
    return [root for root in (os.path.join(CGROUPS, entry) for entry in sorted(os.listdir(CGROUPS)))
            if os.path.exists(root + "/cgroup.procs") and not os.path.islink(root)]


def remove_cgroups(name):
    """Removes a cgroup (relative to the roots) with all below it, once what ran in it has ended."""

    def gone():
        left = False
        for root in cgroup_roots():
            for path, _, _ in os.walk(os.path.join(root, name), topdown=False):
                left = not _rmdir(path) or left
        return not left

    wait_until("the cgroups %s to empty" % name, gone, 20)


def require_possible():
    """Namespaces and cgroups: what else is missing shows when it is used."""
    try:
        run("unshare", "--mount", "--uts", "--ipc", "--net", "--pid", "--fork", "--mount-proc", "true")
    except Trouble as trouble:
        raise lacks("this system doesn't let root make namespaces (is it an unprivileged container?): %s" % trouble) from None
    roots = cgroup_roots()
    if not roots or not all(os.access(root, os.W_OK) for root in roots):
        raise lacks("no cgroups that can be written are mounted at %s" % CGROUPS)


def _rmdir(path):
    try:
        os.rmdir(path)
    except FileNotFoundError:
        pass
    except OSError:
        return False
    return True
