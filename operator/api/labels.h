// The names of every label, annotation, finalizer and scheduling gate that the operator writes or
// reads, for all of the operator's folders and the command line.
//
// Constants only.
#pragma once

namespace ringmaster::api {

// Nothing that begins with this may stand in a pod template: the names are the operator's.
inline constexpr char kOwnPrefix[] = "ringmaster.dev/";

// Labels by which a pod of a job is found.
inline constexpr char kJobNameLabel[] = "training.kubeflow.org/job-name";
inline constexpr char kJobRoleLabel[] = "training.kubeflow.org/job-role";
inline constexpr char kReplicaIndexLabel[] = "training.kubeflow.org/replica-index";
inline constexpr char kJobUidLabel[] = "ringmaster.dev/job-uid";
// The value of the role label.
inline constexpr char kWorkerRole[] = "worker";
// The pods of all jobs. Role and name alone are labels that other operators use too.
inline constexpr char kWorkerSelector[] =
    "training.kubeflow.org/job-role=worker,ringmaster.dev/job-uid";

// On what a job has beside its pods.
inline constexpr char kManagedByLabel[] = "app.kubernetes.io/managed-by";
inline constexpr char kManagedBy[] = "ringmaster";

// Of Kueue, on a job: the queue (LocalQueue) that it stands in, where its spec names none, and its
// WorkloadPriorityClass.
inline constexpr char kQueueLabel[] = "kueue.x-k8s.io/queue-name";
inline constexpr char kQueuePriorityLabel[] = "kueue.x-k8s.io/priority-class";
// On a job's Workload: a digest of what it was made to ask for.
inline constexpr char kWorkloadDigestAnnotation[] = "ringmaster.dev/workload-digest";

// On the operator's own pod that leads.
inline constexpr char kLeaderLabel[] = "ringmaster.dev/leader";

// The operator's name where Kubernetes asks for one: field manager, reporting controller,
// spec.runPolicy.managedBy.
inline constexpr char kOperatorName[] = "ringmaster.dev/operator";

// Keeps a new pod from every node until minReplicas of its job fit together.
inline constexpr char kGangGate[] = "ringmaster.dev/gang";

// When the gate was lifted.
inline constexpr char kAdmittedAnnotation[] = "ringmaster.dev/admitted";

// It was lifted though there was no room for the pod, so that an autoscaler makes a node for it.
inline constexpr char kCallsForNodesAnnotation[] = "ringmaster.dev/calls-for-nodes";

// On a pod of a job that has yet to start: which annotations of autoscalers the operator has put on
// it (with commas), so that none removes its node.
inline constexpr char kShieldAnnotation[] = "ringmaster.dev/shield";

// Where in the topology the pod has to be or should be, near the others of its job: LABEL=VALUE.
inline constexpr char kTopologyAnnotation[] = "ringmaster.dev/topology";

// The pod leaves by plan: why, and since when.
inline constexpr char kDrainAnnotation[] = "ringmaster.dev/drain";
inline constexpr char kDrainSinceAnnotation[] = "ringmaster.dev/drain-since";

// Where the pod's sidecar answers over HTTP.
inline constexpr char kHttpAnnotation[] = "ringmaster.dev/http";

// The pod is on a node that is to go: why, and since when.
inline constexpr char kWarnedAnnotation[] = "ringmaster.dev/warned";
inline constexpr char kWarnedSinceAnnotation[] = "ringmaster.dev/warned-since";
// On a pod that could be put on such a node all the same: the announcements that it was made in
// spite of, a JSON object of reasons by node.
inline constexpr char kAnnouncedAnnotation[] = "ringmaster.dev/announced";

// Keeps the object of a worker pod, and with it the kubelet's last report, through forced deletion
// and pod garbage collection.
inline constexpr char kProofFinalizer[] = "ringmaster.dev/proof-of-death";
// NodeFacts::BootRecord() of the boot that the pod's sidecar runs in.
inline constexpr char kBootAnnotation[] = "ringmaster.dev/boot";
// The proof, where it isn't the kubelet's (that one stays in the pod's status): a taint may go
// again. A person may write it too, and vouches for it then.
inline constexpr char kProvenAnnotation[] = "ringmaster.dev/proven-dead";
// Why a deleted pod is still there, for people.
inline constexpr char kHeldAnnotation[] = "ringmaster.dev/held";

// Keeps the Node object of a `ringmaster node` until that process has ended.
inline constexpr char kNodeFinalizer[] = "ringmaster.dev/node-process";

// Local mode alone. A job's annotations that begin with the prefix are handed on to its pods.
inline constexpr char kLocalPrefix[] = "ringmaster.dev/local-";
inline constexpr char kLocalWorkingDirAnnotation[] = "ringmaster.dev/local-working-dir";
// A directory of this machine where each worker's output is kept in files of its own.
inline constexpr char kLocalOutputDirAnnotation[] = "ringmaster.dev/local-output-dir";
inline constexpr char kLocalKillAnnotation[] = "ringmaster.dev/local-kill";

}  // namespace ringmaster::api
