"""Machines that are reached by ssh: network namespaces (netns.py), each with an sshd, memory to share and a cache of its own.

    with SshHosts(2) as hosts:      # names a and b; the launching machine is one more namespace
        hosts.program               # goes before the words of `ringmaster`
        hosts.environment           # of it: its `ssh` knows a and b, and their keys

sshd is Debian's openssh-server; nothing of the machine's own ssh configuration is read or written."""
import os
import pathlib
import shutil
import stat
import subprocess
import tempfile

import netns
import processes
from waiting import until

SSHD = "/usr/sbin/sshd"
LAUNCHER = 0  # the namespace of the launching machine
NAMES = "abcdef"
SSHD_CONFIG = """
ListenAddress {address}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
PidFile none
UsePAM no
StrictModes no
PermitRootLogin yes
PasswordAuthentication no
SetEnv XDG_CACHE_HOME={folder}/cache-{name}
"""
SSH_CONFIG = """
Host {name}
  HostName {address}
  User {user}
  IdentityFile {folder}/key
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
"""


def missing():
    """Why there can be no such machines here; empty if there can."""
    if not os.path.exists(SSHD):
        return "sshd is not installed (apt-get install openssh-server)"
    return netns.missing()


class SshHosts(netns.Network):

    def __init__(self, binaries, count):
        super().__init__(count + 1)
        self.names = NAMES[:count]
        self.binaries = pathlib.Path(binaries)
        self.servers = []

    def index(self, name):
        return 1 + self.names.index(name)

    def __enter__(self):
        super().__enter__()
        self.holder = tempfile.TemporaryDirectory(prefix="rm-ssh-")
        self.folder = pathlib.Path(self.holder.name)
        for key in ("host_key", "key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / key)], check=True)
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
        for name in self.names:
            self._serve(name)
        ssh = self.folder / "bin" / "ssh"
        ssh.parent.mkdir()
        ssh.write_text("#!/bin/sh\nexec %s -F %s/config \"$@\"\n" % (shutil.which("ssh"), self.folder))
        ssh.chmod(ssh.stat().st_mode | stat.S_IXUSR)
        self.environment = {"PATH": "%s:%s:/usr/bin:/bin" % (ssh.parent, self.binaries)}
        self.program = self.words(LAUNCHER, ["env", "PATH=" + self.environment["PATH"], str(self.binaries / "ringmaster")])
        return self

    def _serve(self, name):
        address = self.address(self.index(name))
        values = {"folder": self.folder, "name": name, "address": address, "user": "root"}
        config = self.folder / ("sshd-" + name)
        config.write_text(SSHD_CONFIG.format(**values))
        with open(self.folder / "config", "a") as file:
            file.write(SSH_CONFIG.format(**values))
        with open(self.folder / "known_hosts", "a") as file:
            file.write("%s %s" % (address, (self.folder / "host_key.pub").read_text()))
        # Memory that is shared is shared within a machine alone.
        start = "mount -t tmpfs -o mode=1777 tmpfs /dev/shm && exec %s -D -e -f %s" % (SSHD, config)
        log = open(self.folder / ("sshd-%s.log" % name), "w")
        self.servers.append(subprocess.Popen(self.words(self.index(name), ["unshare", "--mount", "sh", "-c", start]), stdin=subprocess.DEVNULL,
                                             stdout=log, stderr=log))
        log.close()
        heard = until(lambda: "Server listening" in (self.folder / ("sshd-%s.log" % name)).read_text(), 20, 0.02)
        assert heard, (self.folder / ("sshd-%s.log" % name)).read_text()

    def close(self):
        for server in self.servers:
            server.kill()
            server.wait()
        self.servers = []
        super().close()
        if getattr(self, "holder", None) is not None:
            self.holder.cleanup()
            self.holder = None

    def pids(self, name, entry=""):
        """Processes of that machine with `entry` in their environment."""
        space = os.readlink(self.spaces[self.index(name)].path)
        return [pid for pid, _ in processes.with_environment(entry) if _net(pid) == space]


def _net(pid):
    try:
        return os.readlink("/proc/%d/ns/net" % pid)
    except OSError:
        return ""
