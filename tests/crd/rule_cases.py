"""What the rules of the schema (CEL) refuse, by hand: a rule without a case fails. All three engines have to say the same words."""

CONTAINER = "spec.worker.template.spec.containers[0]"
WORKER = {"name": "worker", "image": "digits", "command": ["python3", "train.py"]}
TEMPLATE = "spec.worker.template.spec"


def containers(*changes):
    return {TEMPLATE + ".containers": [dict(WORKER, **change) for change in changes]}


def init_container(change):
    return {TEMPLATE + ".initContainers": [dict({"name": "x", "image": "x"}, **change)]}


def of_ports(at, holding):
    return [(holding({"ports": [{"containerPort": 80}, dict({"containerPort": port}, **more)]}), at + ".ports[1].containerPort",
             "%d: Ringmaster's sidecar listens on 9401 to 9403: choose another port" % port)
            for port, more in ((9401, {}), (9402, {"protocol": "TCP", "hostPort": 9402}), (9403, {"hostPort": 80, "name": "http"}))]


def of_mounts(at, holding):
    return [(holding({"volumeMounts": [{"name": "v", "mountPath": path}]}), at + ".volumeMounts[0].mountPath",
             '"%s": /opt/ringmaster and /run/ringmaster are taken: choose another path' % path)
            for path in ("/opt/ringmaster", "/run/ringmaster", "/opt/ringmaster/", "/run/ringmaster/link", "//opt//ringmaster/lib",
                         "/var/run/ringmaster")]


# (path of the schema node, the beginning of its rule) -> [(fields to set, path that the error names, words)]
CREATE = {
    ("spec", "!has(self.elasticPolicy.maxReplicas) || self.elasticPolicy.minReplicas"): [
        ({"spec.elasticPolicy": {"minReplicas": 9, "maxReplicas": 8}}, "spec.elasticPolicy.minReplicas",
         "9 is more than maxReplicas (8)")],
    ("spec", "self.collectives.visibleGpus"): [
        ({"spec.slotsPerWorker": 2, "spec.collectives": {"visibleGpus": "Own"}, "spec.elasticPolicy": {"standbyPerPod": 1}},
         "spec.elasticPolicy.standbyPerPod",
         "1 must be 0 where collectives.visibleGpus is Own: a standby learns its slot, and so its GPU, when a worker has died")],
    ("spec", "self.elasticPolicy.allowedSizes.all"): [
        ({"spec.elasticPolicy": {"maxReplicas": 4, "allowedSizes": [2, 6, 9]}}, "spec.elasticPolicy.allowedSizes",
         "[6, 9] is not between minReplicas and maxReplicas"),
        ({"spec.elasticPolicy": {"minReplicas": 2, "allowedSizes": [1, 2]}}, "spec.elasticPolicy.allowedSizes",
         "[1] is not between minReplicas and maxReplicas")],
    ("spec", "self.worker.replicas == 0 || self.worker.replicas >= self.elasticPolicy.minReplicas"): [
        ({"spec.elasticPolicy": {"minReplicas": 3}}, "spec.worker.replicas", "2 is less than elasticPolicy.minReplicas (3)")],
    ("spec", "!has(self.elasticPolicy.maxReplicas) || self.worker.replicas"): [
        ({"spec.elasticPolicy": {"maxReplicas": 1}}, "spec.worker.replicas", "2 is more than elasticPolicy.maxReplicas (1)"),
        ({"spec.elasticPolicy": {"maxReplicas": 4}, "spec.worker.replicas": 9}, "spec.worker.replicas",
         "9 is more than elasticPolicy.maxReplicas (4)")],
    ("spec", "size(self.elasticPolicy.allowedSizes) == 0"): [
        ({"spec.elasticPolicy": {"allowedSizes": [6, 8]}}, "spec.worker.replicas",
         "2 is less than every size in elasticPolicy.allowedSizes")],
    ("spec", "self.worker.replicas * self.slotsPerWorker"): [
        ({"spec.slotsPerWorker": 8, "spec.worker.replicas": 2049}, "spec.worker.replicas",
         "2049 with 8 slotsPerWorker is more than 16384 workers"),
        ({"spec.slotsPerWorker": 1024, "spec.worker.replicas": 10000}, "spec.worker.replicas",
         "10000 with 1024 slotsPerWorker is more than 16384 workers")],
    ("spec.runPolicy.schedulingPolicy.topology", "!has(self.required)"): [
        ({"spec.runPolicy": {"schedulingPolicy": {"topology": {"required": "example.com/rack", "preferred": "example.com/rack"}}}},
         "spec.runPolicy.schedulingPolicy.topology", "has both of the fields required and preferred: leave one out")],
    ("spec.worker.template.metadata", "!has(self.labels)"): [
        ({"spec.worker.template.metadata": {"labels": {"ringmaster.dev/job-uid": "1"}}}, "spec.worker.template.metadata.labels",
         '"ringmaster.dev/job-uid": labels that begin with ringmaster.dev/ are taken')],
    ("spec.worker.template.metadata", "!has(self.labels) || self.labels.all(k, !(k in"): [
        ({"spec.worker.template.metadata": {"labels": {"training.kubeflow.org/" + label: "1"}}}, "spec.worker.template.metadata.labels",
         "training.kubeflow.org/job-name, job-role and replica-index are set by Ringmaster itself")
        for label in ("job-name", "job-role", "replica-index")],
    ("spec.worker.template.metadata", "!has(self.annotations)"): [
        ({"spec.worker.template.metadata": {"annotations": {"a": "b", "ringmaster.dev/drain": "1"}}},
         "spec.worker.template.metadata.annotations", '"ringmaster.dev/drain": annotations that begin with ringmaster.dev/ are taken')],
    (TEMPLATE, "self.containers.filter(c, c.name == 'worker')"): [
        (containers({"name": "main"}, {"name": "other"}), TEMPLATE + ".containers",
         'must hold exactly one container named "worker"; found 0 (containers: ["main", "other"])')],
    (CONTAINER, "self.name != 'worker' || (has(self.command"): [
        (containers({"command": []}), CONTAINER + ".command",
         "is required, as a list such as [python3, train.py]: Ringmaster starts it, so it can't take the image's entrypoint"),
        ({TEMPLATE + ".containers": [{"name": "worker", "image": "digits", "args": ["train.py"]}]}, CONTAINER + ".command",
         "is required, as a list such as [python3, train.py]: Ringmaster starts it, so it can't take the image's entrypoint")],
    (CONTAINER, "self.name != 'worker' || !has(self.restartPolicyRules"): [
        (containers({"restartPolicy": "Never", "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [3]}}]}),
         CONTAINER + ".restartPolicyRules", "must be left out of container worker: Ringmaster itself starts workers again (failurePolicy)")],
    (CONTAINER, "self.name != 'worker' || !has(self.restartPolicy) "): [
        (containers({"restartPolicy": policy}), CONTAINER + ".restartPolicy",
         "must be Never or left out of container worker: Ringmaster itself starts workers again (failurePolicy)")
        for policy in ("Always", "OnFailure")],
    (CONTAINER, "!self.name.startsWith"): [
        (containers({}, {"name": "ringmaster-sidecar"}), TEMPLATE + ".containers[1].name",
         '"ringmaster-sidecar": names that begin with ringmaster- are taken')],
    (CONTAINER + ".env[0]", "!(self.name in "): [
        (containers({"env": [{"name": "A"}, {"name": "RINGMASTER_SLOT", "value": "1"}]}), CONTAINER + ".env[1].name",
         '"RINGMASTER_SLOT" is set by Ringmaster itself: choose another name'),
        (containers({"env": [{"name": "RINGMASTER_MOUNT_SHM"}]}), CONTAINER + ".env[0].name",
         '"RINGMASTER_MOUNT_SHM" is set by Ringmaster itself: choose another name')],
    (TEMPLATE + ".initContainers[0]", "!self.name.startsWith"): [
        ({TEMPLATE + ".initContainers": [{"name": "ringmaster-install", "image": "x"}]}, TEMPLATE + ".initContainers[0].name",
         '"ringmaster-install": names that begin with ringmaster- are taken')],
    (TEMPLATE + ".initContainers[0].env[0]", "!(self.name in "): [
        ({TEMPLATE + ".initContainers": [{"name": "x", "image": "x", "env": [{"name": "RINGMASTER_JOB_UID"}]}]},
         TEMPLATE + ".initContainers[0].env[0].name", '"RINGMASTER_JOB_UID" is set by Ringmaster itself: choose another name')],
    (TEMPLATE + ".volumes[0]", "!self.name.startsWith"): [
        ({TEMPLATE + ".volumes": [{"name": "ringmaster-bin", "emptyDir": {}}]}, TEMPLATE + ".volumes[0].name",
         '"ringmaster-bin": names that begin with ringmaster- are taken')],
    (CONTAINER + ".ports[0]", "self.protocol != 'TCP'"): of_ports(CONTAINER, containers),
    (TEMPLATE + ".initContainers[0].ports[0]", "self.protocol != 'TCP'"): of_ports(TEMPLATE + ".initContainers[0]", init_container),
    (CONTAINER + ".volumeMounts[0]", "!self.mountPath.matches"): of_mounts(CONTAINER, containers),
    (TEMPLATE + ".initContainers[0].volumeMounts[0]", "!self.mountPath.matches"): of_mounts(
        TEMPLATE + ".initContainers[0]", init_container),
    (TEMPLATE + ".schedulingGates[0]", "!self.name.startsWith"): [
        ({TEMPLATE + ".schedulingGates": [{"name": "ringmaster.dev/gang"}]}, TEMPLATE + ".schedulingGates[0].name",
         '"ringmaster.dev/gang": gates that begin with ringmaster.dev/ are taken')],
    ("spec.failurePolicy.rules[0]", "has(self.onExitCodes)"): [
        ({"spec.failurePolicy": {"rules": [{"action": "Ignore"}]}}, "spec.failurePolicy.rules[0]",
         "matches nothing: give onExitCodes or onReasons")],
}

# What is close to a name that is taken, and isn't.
NEAR = [
    containers({"ports": [{"containerPort": 9400}, {"containerPort": 9404}, {"containerPort": 9402, "protocol": "UDP"},
                          {"containerPort": 80, "hostPort": 9403}]}),
    containers({"volumeMounts": [{"name": "v", "mountPath": path} for path in
                                 ("/opt", "/run", "/var/run", "/opt/ringmaster-data", "/data/opt/ringmaster", "/dev/shm")]}),
    init_container({"volumeMounts": [{"name": "v", "mountPath": "/run/ringmasters"}], "ports": [{"containerPort": 9400}]}),
    {"spec.worker.template.metadata": {"labels": {"training.kubeflow.org/team": "a", "ringmaster": "b"},
                                       "annotations": {"prometheus.io/port": "80", "x.ringmaster.dev/y": ""}}},
    {TEMPLATE + ".schedulingGates": [{"name": "example.com/gang"}]},
]

SUSPEND = "can't be changed while the job is not suspended: its pods have to be alike"
NEW_JOB = "can't be changed: make a new job"

SUSPENDED = "oldSelf.runPolicy.suspend || self.runPolicy.suspend || oldSelf.worker.replicas == 0 || self.worker.replicas == 0 || "

# The same for rules about changes: -> [(merge patch of spec, path, words)]
UPDATE = {
    ("spec", "self.slotsPerWorker == oldSelf"): [({"slotsPerWorker": 2}, "spec.slotsPerWorker", NEW_JOB)],
    ("spec", "self.runPolicy.managedBy == oldSelf"): [
        ({"runPolicy": {"managedBy": "kueue.x-k8s.io/multikueue"}}, "spec.runPolicy.managedBy", NEW_JOB)],
    ("spec", SUSPENDED + "self.worker.template"): [
        ({"worker": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}}, "spec.worker.template", SUSPEND),
        ({"worker": {"template": {"metadata": {"labels": {"a": "b"}}}}}, "spec.worker.template", SUSPEND)],
    ("spec", SUSPENDED + "self.collectives"): [
        ({"collectives": {"backend": "Cpu"}}, "spec.collectives", SUSPEND)],
}

# What stays allowed while a job runs.
ALLOWED = [
    {"worker": {"replicas": 0, "template": {"spec": {"nodeSelector": {"a": "b"}}}}, "collectives": {"backend": "Cpu"}},
    {"worker": {"replicas": 3}},
    {"elasticPolicy": {"minReplicas": 2, "maxReplicas": 6, "allowedSizes": [2, 4]}},
    {"runPolicy": {"suspend": True, "backoffLimit": 1}, "worker": {"template": {"spec": {"nodeSelector": {"a": "b"}}}},
     "collectives": {"backend": "Cpu"}},
    {"failurePolicy": {"rules": [{"onExitCodes": [3], "action": "RestartWorker"}]}},
    {"initTimeoutSeconds": 60},
]

# About the object itself: (fields to set, words that the API servers say, path that the parser names).
OBJECT = [
    ({"apiVersion": "ringmaster.dev/v1"}, "version", "apiVersion"),
    ({"apiVersion": "batch/v1"}, "version", "apiVersion"),
    ({"kind": "MPIJob"}, "kind", "kind"),
    ({"metadata.name": "Digits"}, "metadata.name", "metadata.name"),
    ({"metadata.name": "my.digits"}, "metadata.name", "metadata.name"),
    ({"metadata.name": "-digits"}, "metadata.name", "metadata.name"),
    ({"metadata.name": "a" * 51}, "metadata.name", "metadata.name"),
    ({"metadata.name": ""}, "metadata.name", "metadata.name"),
    ({"metadata.name": None}, "metadata.name", "metadata.name"),
    ({"metadata.lables": {"a": "b"}}, "metadata.lables", "metadata.lables"),
    ({"metadata.labels": ["a"]}, "labels", "metadata.labels"),
    ({"metadata.labels": {"a": 1}}, "labels", "metadata.labels.a"),
    ({"metadata.annotations": {"a": True}}, "annotations", "metadata.annotations.a"),
    ({"spce": {}}, "spce", "spce"),
    ({"spec": None}, "spec", "spec"),
]
