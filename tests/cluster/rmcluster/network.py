"""The links between machines: a bridge on the control machine, one cable to each node, routes to each node's pods."""
from . import layout
from .common import run

BRIDGE = "fabric"
BRIDGE_ADDRESS = "02:00:00:00:00:01"  # locally administered


def cable(node):
    return "to-" + node.name


def prepare_control(control):
    control.net("ip", "link", "set", "lo", "up")
    # A fixed hardware address: else the bridge takes the one of a port, and changes it when that port goes, and then
    # all other nodes look for the control machine at an address that is no more.
    control.net("ip", "link", "add", BRIDGE, "address", BRIDGE_ADDRESS, "type", "bridge")
    control.net("ip", "addr", "add", layout.CONTROL_ADDRESS + "/24", "dev", BRIDGE)
    control.net("ip", "link", "set", BRIDGE, "up")
    # Without a default route the service addresses would be unreachable before kube-proxy rewrites them.
    control.net("ip", "route", "add", "default", "dev", BRIDGE)
    control.net("sysctl", "-qw", "net.ipv4.ip_forward=1")


def plug_in(control, node, index, count):
    """Connects node number `index` (from 1) of `count`."""
    control.net("ip", "link", "add", cable(node), "type", "veth", "peer", "name", "eth0", "netns", str(node.need_pid()))
    control.net("ip", "link", "set", cable(node), "master", BRIDGE, "up")
    control.net("ip", "route", "replace", layout.node_pods(index), "via", layout.node_address(index))
    commands = ["link set lo up", "addr add %s/24 dev eth0" % layout.node_address(index), "link set eth0 up",
                "route add default via " + layout.CONTROL_ADDRESS]
    commands += ["route add %s via %s" % (layout.node_pods(other), layout.node_address(other))
                 for other in range(1, count + 1) if other != index]
    run(*node.enter("ip", "-batch", "-", namespaces=["-n"]), stdin="\n".join(commands) + "\n")
    node.net("sysctl", "-qw", "net.ipv4.ip_forward=1")
    # Where the kernel has the switch: packets that stay on the pods' bridge meet the service rules, too.
    node.net("sysctl", "-qw", "net.bridge.bridge-nf-call-iptables=1", check=False)


def unplug(control, node):
    """For good. Connections that had something to say keep the network of a machine without power for minutes."""
    control.net("ip", "link", "delete", cable(node), check=False)


def set_links(control, nodes, up):
    """All at once."""
    commands = ["link set %s %s" % (cable(node), "up" if up else "down") for node in nodes]
    run(*control.enter("ip", "-batch", "-", namespaces=["-n"]), stdin="\n".join(commands) + "\n")


def is_cut(control, node):
    return "state DOWN" in control.net("ip", "-o", "link", "show", "dev", cable(node), check=False)
