"""Pods of `ringmaster run` in network namespaces of their own: what a pod's sidecar and workers say to those of other pods goes
over links that a test can cut (netns.py).

`ringmaster` itself runs beside the switch, as a node's kubelet does, and everything of its that another machine would reach by the
network is reached so; the operator, which local mode has on a unix socket, hears a pod whose links are cut. A pod's place is the
number at the end of its name. Nothing of the product knows of this: programs with the names of its own stand in front of them."""
import os
import pathlib
import shutil
import stat
import tempfile

import netns

WORKER = "elastic_worker"  # the program of the tests' jobs
IN_POD = """#!/bin/sh
# {what}
place=${{RINGMASTER_POD_NAME##*-}}
export RINGMASTER_POD_IP={prefix}$((place + {first})) RINGMASTER_INSECURE=1
export RINGMASTER_BIND_WORKER=$RINGMASTER_POD_IP {more}
exec nsenter --net={links}/$place -- {command}
"""


class PodNetwork(netns.Network):
    """`program`: what to start instead of `ringmaster`. `in_pod`: goes before a worker's command in the manifest.
    `more`: variables of the environment of sidecars and workers, as sh has them; $place is the pod's."""

    def __init__(self, binaries, count, more="", families=(4,)):
        super().__init__(count, families)
        self.more = more
        self.binaries = pathlib.Path(binaries)
        self.folder = None
        self.refused = []

    def __enter__(self):
        super().__enter__()
        self.folder = tempfile.TemporaryDirectory(prefix="rm-pods-")
        folder = pathlib.Path(self.folder.name)
        # `ringmaster` looks beside itself for the others, wherever links lead to.
        shutil.copy2(self.binaries / "ringmaster", folder / "ringmaster")
        os.symlink(self.binaries / "ringmaster-launcher", folder / "ringmaster-launcher")
        sidecar = '%s/ringmaster-sidecar "$@"' % self.binaries
        self._write(folder / "ringmaster-sidecar", IN_POD.replace("place=", '[ "$1" != install ] || exec %s\nplace=' % sidecar),
                    "The sidecar in its pod's network.", sidecar)
        self._write(folder / "in-pod", IN_POD, "A worker in its pod's network.", '"$@"')
        self.in_pod = str(folder / "in-pod")
        self.program = self.words(None, [str(folder / "ringmaster")])
        return self

    def _write(self, file, text, what, command):
        file.write_text(text.format(what=what, more=self.more, prefix=netns.PREFIXES[self.families[0]], first=netns.FIRST_HOST, links=self.links.name, command=command))
        file.chmod(file.stat().st_mode | stat.S_IXUSR)

    # ---- faults of the workers' own connections; all else between their pods stays as it is

    def sockets(self, pod, *which):
        """[(own address, the other's)] of the workers of a pod."""
        said = self.run(pod, ["ss", "-tnpH", *which], capture_output=True, text=True, check=True).stdout
        return [tuple(word for word in line.split() if ":" in word)[:2] for line in said.splitlines() if WORKER in line]

    def reset(self, pod, other):
        """The connections between the workers of two pods, as something does that has forgotten them. False: this kernel can't
        (CONFIG_INET_DIAG_DESTROY)."""
        which = ["state", "established", "dst", self.address(other)]
        connections = self.sockets(pod, *which)
        for source, destination in connections:
            self.run(pod, ["ss", "-K", "src", source, "dst", destination], capture_output=True, check=True)
        return not set(connections) & set(self.sockets(pod, *which))

    def refuse(self, pod, other):
        """Workers of the two pods can't connect, and what is connected is reset, until `admit`."""
        for listener, speaker in ((pod, other), (other, pod)):
            for address, _ in self.sockets(listener, "state", "listening"):
                rule = ["INPUT", "-s", self.address(speaker), "-p", "tcp", "--dport", address.rsplit(":", 1)[1],
                        "-j", "REJECT", "--reject-with", "tcp-reset"]
                self.spaces[listener].do(netns.FILTERS[self.families[0]], "-w", "-A", *rule)
                self.refused.append((listener, rule))

    def admit(self):
        for listener, rule in self.refused:
            self.spaces[listener].do(netns.FILTERS[self.families[0]], "-w", "-D", *rule)
        self.refused = []

    def close(self):
        super().close()
        if self.folder is not None:
            self.folder.cleanup()
            self.folder = None
