"""A cluster as a whole: up, down, what happens to its nodes, what state it is in."""
import os
import subprocess
import sys
import time

from . import control_plane, fake_nodes, images, layout, machine, network, node, programs
from .api import Api, heard_since, is_ready
from .common import Trouble, run, say, tail, wait_until
from .pki import Pki


class Cluster:
    def __init__(self, directory):
        self.layout = layout.Layout(directory)
        self.control = machine.Machine(self.layout, layout.CONTROL)
        self.facts = self.layout.facts()

    # What there is.

    def node_names(self):
        return ["n%d" % index for index in range(1, self.facts.get("nodes", 0) + 1)]

    def node(self, name):
        if name not in self.node_names():
            raise Trouble("no node %s; the nodes are %s" % (name, ", ".join(self.node_names())), status=2)
        return machine.Machine(self.layout, name)

    def nodes(self):
        return [self.node(name) for name in self.node_names()]

    def is_up(self):
        return bool(self.facts.get("complete")) and self.control.pid is not None

    def need_up(self):
        if not self.is_up():
            raise Trouble("no cluster is up in %s (cluster up --dir %s)" % (self.layout.dir, self.layout.dir))

    def api(self):
        return Api(Pki(self.layout), self.facts["port"])

    # Up and down.

    def up(self, options):
        wanted = {"nodes": options.nodes, "fake_nodes": options.fake_nodes, "gpus": options.gpus,
                  "grace": options.grace or (fake_nodes.GRACE if options.fake_nodes else control_plane.DEFAULT_GRACE),
                  "eviction_delay": options.eviction_delay, "feature_gates": options.feature_gates}
        self.layout.lock()
        self.facts = self.layout.facts()
        if self.is_up():
            same = all(self.facts.get(key) == value for key, value in wanted.items())
            if not same:
                raise Trouble("another cluster is up in %s (%s): take it down first, or choose another --dir"
                              % (self.layout.dir, ", ".join("%s %s" % (key, self.facts.get(key)) for key in wanted)))
            say("the cluster in %s is up already" % self.layout.dir)
            return
        self._clear_leftovers()
        self.facts = wanted
        self.layout.save(self.facts)
        try:
            self._bring_up(options.port)
        except BaseException:
            if not options.keep_failed:
                say("taking down what came up (--keep-failed would leave it)")
                self._end()
            raise
        self.facts["complete"] = True
        self.layout.save(self.facts)

    def _clear_leftovers(self):
        old = [entry for entry in os.listdir(self.layout.dir)]
        if not old and not machine.marked(self.layout.dir):
            return
        if old and "cluster.json" not in old and "machines" not in old:
            raise Trouble("%s is not empty and holds no cluster: choose another --dir" % self.layout.dir, status=2)
        say("clearing what an earlier cluster left in %s" % self.layout.dir)
        self._end(keep_directory=True)

    def _bring_up(self, port):
        say("certificates")
        pki = Pki(self.layout)
        addresses = {name: layout.node_address(index + 1) for index, name in enumerate(self.node_names())}
        pki.create(addresses)
        say("%d machines and their network" % (1 + len(addresses)))
        self.control.power_on()
        network.prepare_control(self.control)
        self._forward(port)
        pki.kubeconfig("admin", "https://127.0.0.1:%d" % self.facts["port"], path=self.layout.kubeconfig)
        if os.environ.get("SUDO_UID"):  # who typed sudo wants to use it
            os.chown(self.layout.kubeconfig, int(os.environ["SUDO_UID"]), int(os.environ.get("SUDO_GID", -1)))
        say("control plane")
        control_plane.start_etcd(self.control)
        control_plane.start_api_server(self.control, pki, self.facts)
        for each in self.nodes():
            self._start_machine(each, pki)
        if self.nodes():
            images.load(self.nodes(), images.pause_archive())
            images.load(self.nodes(), images.base_archive())
        api = self.api()
        control_plane.wait_for_api(self.control, api)
        control_plane.start_controllers(self.control, pki, self.facts)
        control_plane.start_scheduler(self.control, pki, self.facts)
        control_plane.start_dns(self.control, pki, api)
        for each in self.nodes():
            self._start_kubelet(each, pki)
        if self.facts["fake_nodes"]:
            say("%d fake nodes" % self.facts["fake_nodes"])
            fake_nodes.start(self.control, pki)
            fake_nodes.create(self.control, api, self.facts["fake_nodes"], self.facts["gpus"])
        say("waiting for the nodes to be Ready")
        self._wait_ready(self.node_names(), 90)
        self._wait_usable(api)

    def _index(self, each):
        return self.node_names().index(each.name) + 1

    def _start_machine(self, each, pki):
        each.power_on()
        network.plug_in(self.control, each, self._index(each), len(self.node_names()))
        node.configure(each, pki, self._index(each))
        node.start_containers(each)

    def _start_kubelet(self, each, pki):
        node.start_kubelet(each, pki, self._index(each))
        node.start_proxy_and_devices(each, self.facts["gpus"])

    def _forward(self, port):
        """Makes the API reachable at the system's loopback."""
        port_file = self.layout.path("port")
        with open(self.layout.path("forward.log"), "w") as log:
            process = subprocess.Popen(
                [sys.executable, "-B", os.path.join(layout.HERE, "rmcluster", "forward.py"), str(port),
                 str(self.control.need_pid()), "127.0.0.1", str(layout.API_PORT), port_file],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/",
                env=dict(os.environ, **{machine.MARK: self.layout.dir}))

        def listening():
            if process.poll() is not None:
                raise Trouble("the way to the API did not open: " + tail(self.layout.path("forward.log"), 1))
            return os.path.exists(port_file)

        wait_until("a port for the API", listening, 20, period=0.02)
        with open(port_file) as file:
            self.facts["port"] = int(file.read())
        self.layout.save(self.facts)

    def _wait_ready(self, names, seconds):
        api = self.api()

        def ready():
            have = api.nodes()
            for name in names:
                for program in ("containerd", "kubelet"):
                    self.node(name).require_alive(program)
            return all(name in have and is_ready(have[name]) for name in names)

        wait_until("%s to be Ready" % ", ".join(names), ready, seconds, period=0.3)
        if self.facts["gpus"]:
            want = self.facts["gpus"]

            def offered():
                have = api.nodes()
                return all(int(have[name]["status"]["allocatable"].get(node.GPU, 0)) == want - len(node.sick(self.node(name)))
                           for name in names)

            wait_until("the GPUs of %s" % ", ".join(names), offered, 60, period=0.3)

    def _wait_usable(self, api):
        """Pods can be made in a namespace once the controllers have made its service account."""
        wait_until("the default service account", lambda: api.request(
            "GET", "/api/v1/namespaces/default/serviceaccounts/default")[0] == 200, 60)

    def down(self):
        if not self.layout.exists() and not machine.marked(self.layout.dir):
            return False
        self.layout.lock()
        self._end()
        return True

    def _end(self, keep_directory=False):
        machine.kill_marked(self.layout.dir)
        machine.remove_cgroups(self.layout.id)
        if not keep_directory:
            self.layout.remove()
            return
        for entry in os.listdir(self.layout.dir):
            run("rm", "-rf", self.layout.path(entry))

    # What happens to nodes.

    def crash(self, *names):
        self._change()
        nodes = [self.node(name) for name in names]
        for each in nodes:
            each.need_pid()
        # First, for a machine without power sends nothing: the kernel of ours would end its connections for it.
        network.set_links(self.control, nodes, up=False)
        machine.power_off(nodes)
        for each in nodes:
            network.unplug(self.control, each)

    def boot(self, name):
        self._change()
        each = self.node(name)
        if each.pid is not None:
            raise Trouble("%s is running (crash it first)" % name)
        pki = Pki(self.layout)
        node.renew_boot_id(each)
        self._start_machine(each, pki)
        self._start_kubelet(each, pki)

    def partition(self, name):
        self._change()
        self.node(name).need_pid()
        network.set_links(self.control, [self.node(name)], up=False)

    def heal(self, name):
        self._change()
        self.node(name).need_pid()
        network.set_links(self.control, [self.node(name)], up=True)

    # What happens to the API server.

    def restart_api_server(self, away):
        self._change()
        self.control.stop("kube-apiserver")
        time.sleep(away)
        self._start_api_server(Pki(self.layout))

    def _start_api_server(self, pki):
        control_plane.start_api_server(self.control, pki, self.facts)
        control_plane.wait_for_api(self.control, self.api())
        # They would come back by themselves, after pauses that grow to a minute. Elsewhere they lose their leases and start again.
        for program in ("kube-controller-manager", "kube-scheduler"):
            self.control.stop(program)
        control_plane.start_controllers(self.control, pki, self.facts)
        control_plane.start_scheduler(self.control, pki, self.facts)

    def replace_token_key(self):
        """Kubelets keep the tokens that they were given for their pods: they have to start again, to ask for others."""
        self._change()
        pki = Pki(self.layout)
        self.control.stop("kube-apiserver")
        pki.token_key()
        self._start_api_server(pki)
        for each in self.nodes():
            if each.pid is not None:
                each.stop("kubelet")
                node.start_kubelet(each, pki, self._index(each))

    def set_gpus(self, name, devices, healthy):
        self._change()
        each = self.node(name)
        if not self.facts["gpus"]:
            raise Trouble("the cluster has no GPUs (up --gpus N)", status=2)
        for device in devices:
            if not 0 <= device < self.facts["gpus"]:
                raise Trouble("no device %d on %s; they are 0 to %d" % (device, name, self.facts["gpus"] - 1), status=2)
        sick = node.sick(each)
        node.set_sick(each, sick - set(devices) if healthy else sick | set(devices))

    def wait_node(self, name, ready, seconds, since):
        """For --wait: until the API server shows the node as Ready, as known since then, or as no longer Ready."""
        api = self.api()
        if ready:
            # A crash or cut so short that no controller noticed: what the API server shows may be of before.
            wait_until("%s to be heard of" % name, lambda: api.lease_renewed(name) > since and
                       heard_since(api.nodes()[name], since), seconds, period=0.2)
            return self._wait_ready([name], seconds)
        return wait_until("%s to be noticed as lost" % name, lambda: not is_ready(api.nodes()[name]), seconds, period=0.3)

    def load_image(self, source):
        self._change()
        images.load([each for each in self.nodes() if each.pid is not None], source)

    def _change(self):
        self.layout.lock()
        self.facts = self.layout.facts()
        self.need_up()

    # What state it is in.

    def status(self):
        """(text, everything is well)"""
        if not self.facts:
            return "no cluster in %s" % self.layout.dir, False
        lines, well = ["directory   " + self.layout.dir, "kubeconfig  " + self.layout.kubeconfig], self.is_up()
        have = {}
        if self.control.pid is not None and self.facts.get("port"):
            try:
                have = self.api().nodes()
            except Trouble as trouble:
                lines.append("API         " + str(trouble))
                well = False
        for each in [self.control, *self.nodes()]:
            state, fine = self._machine_status(each, have)
            lines.append("%-11s %s" % (each.name, state))
            well = well and fine
        if self.facts.get("fake_nodes"):
            ready = sum(is_ready(item) for name, item in have.items() if name.startswith("fake-"))
            lines.append("fake nodes  %d of %d Ready" % (ready, self.facts["fake_nodes"]))
            well = well and ready == self.facts["fake_nodes"]
        if not self.facts.get("complete"):
            lines.append("`up` was interrupted: `up` again, or `down`")
        return "\n".join(lines), well

    def _machine_status(self, each, have):
        if each.pid is None:
            return "off", False
        words, fine = [], True
        if each.name != layout.CONTROL:
            ready = each.name in have and is_ready(have[each.name])
            words.append("Ready" if ready else "not Ready")
            fine = ready
            if network.is_cut(self.control, each):
                words.append("partitioned")
                fine = False
            if self.facts.get("gpus") and each.name in have:
                words.append("%s of %d GPUs allocatable" % (have[each.name]["status"]["allocatable"].get(node.GPU, 0),
                                                           self.facts["gpus"]))
        programs_now = each.programs()
        dead = [name for name, alive in programs_now.items() if not alive]
        words.append("runs " + ", ".join(name for name, alive in programs_now.items() if alive))
        if dead:
            words.append("ENDED: %s (logs in %s)" % (", ".join(dead), each.path("logs")))
        return "; ".join(words), fine and not dead


def prepare(options):
    """Everything that a cluster needs and that stays on the machine: packages, programs, images."""
    programs.install_packages()
    machine.require_possible()
    things = list(programs.NEEDED_TO_RUN)
    if options.fake_nodes:
        things.append("kwok")
    programs.build(things)
    images.make_pause()
    images.make_base()
