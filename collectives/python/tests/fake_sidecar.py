"""A sidecar for tests: one pod of many slots, membership decided by one thread, no protocol with
others.

It speaks the worker link (docs/contracts.md, section 2) well enough to bootstrap a world, to go on
after a worker's death, to let joiners in and to drain, so that real worker processes with the real
library can be tested without operator, launcher or rendezvous.
"""

import json
import os
import selectors
import socket
import struct
import subprocess
import sys
import threading
import time

DEADLINE = 240.0  # of a wait; far above what any takes, the machine may be busy
LINEAGE = 1 << 40


class Peer:
    """One connected worker process."""

    def __init__(self, connection):
        self.connection = connection
        self.buffer = b""
        self.hello = {}
        self.asked = self.entered = self.left = False
        self.stopped = self.boundary = 0
        self.finished = self.resting = False
        self.step = 0
        self.values = {}

    def send(self, kind, /, **fields):
        data = json.dumps(dict(fields, t=kind)).encode()
        try:
            self.connection.sendall(struct.pack("<I", len(data)) + data)
        except OSError:
            pass  # its end is noticed by reading

    def frames(self, data):
        self.buffer += data
        while len(self.buffer) >= 4:
            length, = struct.unpack("<I", self.buffer[:4])
            if len(self.buffer) < 4 + length:
                return
            text, self.buffer = self.buffer[4:4 + length], self.buffer[4 + length:]
            yield json.loads(text)


class FakeSidecar:
    """Owns the socket and the view. Its thread owns all state; tests look at it under `changed`."""

    def __init__(self, path, initial_size, held=(), rests=True):
        """`held`: (slot, incarnation) of joiners that come only when admit() says so. `rests`: a
        worker may begin again after a shutdown; earlier versions take that for the job's end.
        """
        self.rests = rests
        self.path = path
        self.initial_size = initial_size
        self.held = set(held)
        self.changed = threading.Condition()
        self.epoch = 0
        self.members = []  # peers in rank order
        self.views = []  # (epoch, reason, slots)
        self.draining = set()  # slots
        self.finished = set()  # slots that said so
        self.log = []  # frames that came, but pings
        self._peers = {}
        self._dropping = None  # a slot
        self._change = None  # what is under way: (reason, members to be, planned)
        self._stage = None
        self._selector = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen()
        self._wake_read, self._wake_write = os.pipe()
        for source in (self._listener, self._wake_read):
            self._selector.register(source, selectors.EVENT_READ)
        self._closing = False
        self._thread = threading.Thread(target=self._loop, daemon=True)
        self._thread.start()

    # ---- For tests

    def admit(self, slot, incarnation):
        with self.changed:
            self.held.discard((slot, incarnation))
        os.write(self._wake_write, b"x")

    def drain(self, slot):
        with self.changed:
            self.draining.add(slot)
        os.write(self._wake_write, b"x")

    def drop(self, slot):
        """A wrong suspicion: the others go on without a worker that lives."""
        with self.changed:
            self._dropping = slot
        os.write(self._wake_write, b"x")

    def promote(self, slot, incarnation):
        """The standby takes the place of a dead worker."""
        with self.changed:
            peer = next(p for p in self._peers.values() if p.hello.get("standby"))
            peer.hello = dict(peer.hello, slot=slot, incarnation=incarnation, standby=False)
            peer.send("promoted", slot=slot, incarnation=incarnation, rank=len(self.members),
                      size=len(self.members) + 1, localRank=slot, localSize=self.initial_size)

    def wait(self, condition, what, seconds=DEADLINE):
        with self.changed:
            if not self.changed.wait_for(lambda: condition(self), seconds):
                raise AssertionError("%s did not come; views: %s; frames: %s"
                                     % (what, self.views, self.log[-20:]))

    def close(self):
        self._closing = True
        os.write(self._wake_write, b"x")
        self._thread.join(10)
        for peer in self._peers.values():
            peer.connection.close()
        self._listener.close()
        os.close(self._wake_read)
        os.close(self._wake_write)

    # ---- The loop

    def _loop(self):
        while not self._closing:
            for key, _ in self._selector.select(1.0):
                with self.changed:
                    self._ready(key.fileobj)
                    self._advance()
                    self.changed.notify_all()

    def _ready(self, source):
        if source is self._listener:
            connection, _ = source.accept()
            self._peers[connection] = Peer(connection)
            self._selector.register(connection, selectors.EVENT_READ)
        elif source == self._wake_read:
            os.read(source, 100)
        else:
            self._read(self._peers[source])

    def _read(self, peer):
        try:
            data = peer.connection.recv(1 << 16)
        except OSError:
            data = b""
        if not data:
            self._selector.unregister(peer.connection)
            peer.connection.close()
            del self._peers[peer.connection]
            if peer in self.members and not peer.finished:
                self._begin("WorkerLost", [m for m in self.members if m is not peer], planned=False)
            return
        for frame in peer.frames(data):
            self._frame(peer, frame)

    def _frame(self, peer, frame):
        kind = frame["t"]
        if kind == "ping":
            peer.step, peer.values = frame.get("step", 0), frame.get("values", {})
            return peer.send("pong", n=frame["n"])
        frame.pop("seconds", None)
        self.log.append((peer.hello.get("slot"), frame))
        if kind == "hello":
            peer.hello = frame
            joins = self.epoch or self._key(peer) in self.held
            state = "standby" if frame["standby"] else "joining" if joins else "bootstrap"
            peer.send("welcome", version=1, job="test", pod="pod-0", slot=frame["slot"],
                      incarnation=frame["incarnation"], state=state, epoch=self.epoch,
                      rank=frame["slot"], size=self.initial_size, localRank=frame["slot"],
                      localSize=self.initial_size, pingMs=100, fenceMs=10000,
                      **({"rests": True} if self.rests else {}))
        elif kind == "enter":
            peer.asked, peer.entered = True, frame.get("state", True)  # without state nobody joins
        elif kind in ("stopped", "boundary"):
            setattr(peer, kind, max(getattr(peer, kind), frame["epoch"]))
        elif kind in ("resting", "woken"):
            peer.resting = kind == "resting"
        elif kind == "finished":
            peer.finished = True
            self.finished.add(peer.hello["slot"])

    # ---- Views

    def _begin(self, reason, members, planned):
        """A fault takes the place of a plan; a plan begins only when nothing is under way."""
        self._change = (reason, members, planned)
        self._stage = "arm" if planned else "stop"
        for member in self.members:
            member.send("arm" if planned else "stop", epoch=self.epoch)

    def _advance(self):
        if self._change is None and self._dropping is not None:
            stay = [m for m in self.members if m.hello["slot"] != self._dropping]
            self._dropping = None
            self._begin("PodLost", stay, planned=False)
        if self._change is None:
            self._next_change()
        if self._change is None:
            return
        reason, members, planned = self._change
        alive = [m for m in self.members if m.connection in self._peers]
        if self._stage == "arm" and all(m.boundary >= self.epoch for m in alive):
            self._stage = "stop"
            for member in self.members:
                member.send("stop", epoch=self.epoch)
        if self._stage == "stop" and all(m.stopped >= self.epoch for m in alive):
            self._install(reason, [m for m in members if m.connection in self._peers], planned)

    def _next_change(self):
        entered = [p for p in self._peers.values() if p.entered and p not in self.members]
        waiting = [p for p in entered if self._key(p) not in self.held]
        waiting.sort(key=lambda peer: peer.hello["slot"])
        if self.epoch == 0:
            spares = sum(p.asked and self._key(p) in self.held for p in self._peers.values())
            if len(waiting) == self.initial_size and spares == len(self.held):
                self._install("Bootstrap", waiting, planned=True)
        elif any(member.finished for member in self.members):
            for peer in self._peers.values():  # the job is finishing: no worker joins any more
                if peer.hello and peer not in self.members and not peer.left:
                    peer.entered, peer.left = False, True
                    peer.send("left", epoch=self.epoch, reason="the job is finishing")
        elif any(m.hello["slot"] in self.draining for m in self.members):
            stay = [m for m in self.members if m.hello["slot"] not in self.draining]
            self._begin("PodDrained", stay, planned=True)
        elif waiting:
            self._begin("WorkerJoined", self.members + waiting, planned=True)

    @staticmethod
    def _key(peer):
        return peer.hello["slot"], peer.hello["incarnation"]

    def _install(self, reason, members, planned):
        before, parent = self.members, self.epoch
        self._change = self._stage = None
        self.members = members
        self.epoch = (self.epoch or LINEAGE) + 1
        self.views.append((self.epoch, reason, [m.hello["slot"] for m in members]))
        view = {"epoch": self.epoch, "parent": parent, "reason": reason, "train": True,
                "planned": planned, "coordinator": "uid-0",
                "pods": [{"uid": "uid-0", "name": "pod-0", "incarnation": 1, "node": "n",
                          "zone": "", "address": "127.0.0.1:1", "heartbeat": "127.0.0.1:2",
                          "http": "127.0.0.1:3"}],
                "ranks": [{"pod": 0, "slot": m.hello["slot"], "incarnation": m.hello["incarnation"],
                           "tcp": m.hello.get("tcp", ""), "shm": m.hello.get("shm", ""),
                           "joined": m not in before} for m in members]}
        donors = [i for i, m in enumerate(members) if m in before]
        for rank, member in enumerate(members):
            member.send("view", view=view, self=rank, donors=donors)
        for member in before:
            if member not in members and member.connection in self._peers:
                member.entered = False
                if planned:
                    member.send("left", epoch=self.epoch, reason="drained")
                else:
                    member.send("view", view=view, self=-1, donors=donors)


def start_process(command, log, environ):
    """A worker; `log`: the file for what it prints. Returns its Popen."""
    with open(log, "w") as file:
        return subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT,
                                stdin=subprocess.DEVNULL, env=environ)


class Job:
    """Worker processes of one script under a FakeSidecar.

    `spares`: slots of which a further process is started at once and admitted later. The world
    is bootstrapped when they, too, have done their imports: so no test depends on how long that
    takes.
    """

    def __init__(self, folder, command, size, environ=None, spares=(), python=None, rests=True,
                 start_process=start_process):
        """`python`: the workers' interpreter. It gets what it needs of `environ`'s PYTHONPATH.
        `start_process`: starts a worker, as the function of that name does.
        """
        self.command = [python or sys.executable] + command
        self._start_process = start_process
        slots = list(range(size)) + list(spares)
        keys = [(slot, slots[:index].count(slot) + 1) for index, slot in enumerate(slots)]
        self.sidecar = FakeSidecar(os.path.join(str(folder), "s"), size, keys[size:], rests)
        self.folder = str(folder)
        self._environ = dict(os.environ, RINGMASTER_SOCKET=self.sidecar.path,
                             RINGMASTER_JOB_UID="test", OMP_NUM_THREADS="1",
                             PYTHONPATH=os.pathsep.join(path for path in sys.path if path))
        self._environ.update(environ or {})
        self.processes = {}  # (slot, incarnation): Popen
        self._started = {}  # slot: newest incarnation
        self._live = {slot: 1 for slot in range(size)}  # slot: incarnation in the world
        for slot in slots:
            self.start(slot)

    def start(self, slot, **environ):
        incarnation = self._started.get(slot, 0) + 1
        self._started[slot] = incarnation
        self.processes[slot, incarnation] = self._start_process(
            self.command, os.path.join(self.folder, "%d-%d.log" % (slot, incarnation)),
            dict(self._environ, RINGMASTER_SLOT=str(slot), RINGMASTER_POD_NAME="pod-0",
                 RINGMASTER_INCARNATION=str(incarnation), **environ))

    def kill(self, slot):
        self.processes[slot, self._live[slot]].kill()

    def admit(self, slot):
        """Lets the next spare of this slot in."""
        self._live[slot] = self._live.get(slot, 0) + 1
        self.sidecar.admit(slot, self._live[slot])

    def replace_slot_0(self, killed_at=10, admitted_at=20):
        """Kills slot 0 at one step and lets its spare in at another. Until all have ended, and all
        but the killed one well.
        """
        others = sorted(slot for slot in self._live if slot != 0)
        self.wait_world([0, *others], step=killed_at)
        self.kill(0)
        self.wait_world(others, step=admitted_at)
        self.admit(0)
        self.wait_world([*others, 0])
        assert {who: code for who, code in self.wait().items() if code} == {(0, 1): -9}, self.logs()

    def wait_world(self, slots, step=0):
        """Until the view has these slots in this order and its first worker has done `step` steps.
        """
        self._until(lambda s: s.views and s.views[-1][2] == list(slots)
                    and s.members and s.members[0].step >= step,
                    "a world of slots %s at step %d" % (list(slots), step))

    def at_step(self, more):
        """Until the first worker of the view has done `more` steps more than now."""
        with self.sidecar.changed:
            target = max((m.step for m in self.sidecar.members), default=0) + more
        self._until(lambda s: s.members and s.members[0].step >= target, "step %d" % target)

    def _until(self, condition, what):
        """Waits for the sidecar's condition; if it does not come, the workers' logs say why."""
        try:
            self.sidecar.wait(condition, what)
        except AssertionError as error:
            ended = {key: process.poll() for key, process in self.processes.items()
                     if process.poll() is not None}
            raise AssertionError("%s\nworkers that have ended: %s\n%s"
                                 % (error, ended, self.logs())) from None

    def wait(self, seconds=DEADLINE):
        """Exit codes by (slot, incarnation); raises with the logs if one does not end."""
        deadline = time.monotonic() + seconds
        try:
            return {key: process.wait(max(0.1, deadline - time.monotonic()))
                    for key, process in self.processes.items()}
        except subprocess.TimeoutExpired:
            raise AssertionError("a worker did not end; views %s\n%s"
                                 % (self.sidecar.views, self.logs()))

    def logs(self):
        text = ""
        for slot, incarnation in self.processes:
            with open(os.path.join(self.folder, "%d-%d.log" % (slot, incarnation))) as file:
                text += "--- slot %d incarnation %d\n%s" % (slot, incarnation, file.read()[-3000:])
        return text

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
            process.wait()
        self.sidecar.close()
