// The names of all labels, annotations, finalizers and scheduling gates that the operator writes or
// reads, for all of its folders and the command line.
//
// Constants only.
#pragma once

namespace ringmaster::api {

// Pod templates may not use names with this prefix: they belong to the operator.
inline constexpr char kOwnPrefix[] = "ringmaster.dev/";

// Labels by which the pods of a job are found.
inline constexpr char kJobNameLabel[] = "training.kubeflow.org/job-name";
inline constexpr char kJobRoleLabel[] = "training.kubeflow.org/job-role";
inline constexpr char kReplicaIndexLabel[] = "training.kubeflow.org/replica-index";
inline constexpr char kJobUidLabel[] = "ringmaster.dev/job-uid";
// The value of the role label.
inline constexpr char kWorkerRole[] = "worker";
// Selects the pods of all jobs. Role and job name alone are labels that other operators use too.
inline constexpr char kWorkerSelector[] =
    "training.kubeflow.org/job-role=worker,ringmaster.dev/job-uid";

// On the objects that a job has beside its pods.
inline constexpr char kManagedByLabel[] = "app.kubernetes.io/managed-by";
inline constexpr char kManagedBy[] = "ringmaster";

// Kueue's labels on a job: its queue (LocalQueue), if its spec names none, and its
// WorkloadPriorityClass.
inline constexpr char kQueueLabel[] = "kueue.x-k8s.io/queue-name";
inline constexpr char kQueuePriorityLabel[] = "kueue.x-k8s.io/priority-class";
// On a job's Workload: a digest of what it was built to ask for.
inline constexpr char kWorkloadDigestAnnotation[] = "ringmaster.dev/workload-digest";

// On a job's ProvisioningRequest: a digest of the template of its pods, the domain that they must
// run in, and how often such a request was made.
inline constexpr char kTemplateDigestAnnotation[] = "ringmaster.dev/template-digest";
inline constexpr char kDomainAnnotation[] = "ringmaster.dev/domain";
inline constexpr char kAttemptAnnotation[] = "ringmaster.dev/attempt";

// On the pod of the operator that leads.
inline constexpr char kLeaderLabel[] = "ringmaster.dev/leader";

// The operator's name in Kubernetes: field manager, reporting controller, spec.runPolicy.managedBy.
inline constexpr char kOperatorName[] = "ringmaster.dev/operator";

// Earlier versions made pods with this scheduling gate and removed it when minReplicas of the job
// fitted together. A pod that still has it is deleted.
inline constexpr char kGangGate[] = "ringmaster.dev/gang";

// The pod was created although there was no room for it, so that an autoscaler makes a node.
inline constexpr char kCallsForNodesAnnotation[] = "ringmaster.dev/calls-for-nodes";

// On a pod of a job that has yet to start: the autoscalers' annotations, separated by commas, that
// the operator has set on it so that no autoscaler removes its node.
inline constexpr char kShieldAnnotation[] = "ringmaster.dev/shield";

// On a pod: Spec::pods_digest of the spec that it was made from.
inline constexpr char kMadeFromAnnotation[] = "ringmaster.dev/made-from";
inline constexpr char kMadeAtAnnotation[] = "ringmaster.dev/made-at-generation";

// Where in the topology the pod must or should run, near the other pods of its job: LABEL=VALUE.
inline constexpr char kTopologyAnnotation[] = "ringmaster.dev/topology";

// The pod is drained: the reason, and since when.
inline constexpr char kDrainAnnotation[] = "ringmaster.dev/drain";
inline constexpr char kDrainSinceAnnotation[] = "ringmaster.dev/drain-since";

// Address of the HTTP server of the pod's sidecar.
inline constexpr char kHttpAnnotation[] = "ringmaster.dev/http";

// The pod's node is about to go: the reason, and since when.
inline constexpr char kWarnedAnnotation[] = "ringmaster.dev/warned";
inline constexpr char kWarnedSinceAnnotation[] = "ringmaster.dev/warned-since";
// On a pod that was allowed onto such a node: a JSON object with the reason by node of the
// announcements that were ignored.
inline constexpr char kAnnouncedAnnotation[] = "ringmaster.dev/announced";

// Keeps the object of a worker pod, with the kubelet's last report in it, through forced deletion
// and pod garbage collection.
inline constexpr char kProofFinalizer[] = "ringmaster.dev/proof-of-death";
// NodeFacts::BootRecord() of the boot in which the pod's sidecar runs.
inline constexpr char kBootAnnotation[] = "ringmaster.dev/boot";
// The proof of death, if it is not the kubelet's report (which stays in the pod's status): it is
// written down because a taint may be removed again. People may set it too, and then vouch for it.
inline constexpr char kProvenAnnotation[] = "ringmaster.dev/proven-dead";
// Why a deleted pod still exists, for people.
inline constexpr char kHeldAnnotation[] = "ringmaster.dev/held";

// Keeps the Node object of a `ringmaster node` until that process has ended.
inline constexpr char kNodeFinalizer[] = "ringmaster.dev/node-process";

// For local mode only. A job's annotations with this prefix are copied to its pods.
inline constexpr char kLocalPrefix[] = "ringmaster.dev/local-";
inline constexpr char kLocalWorkingDirAnnotation[] = "ringmaster.dev/local-working-dir";
// A directory of this machine with one output file for each worker.
inline constexpr char kLocalOutputDirAnnotation[] = "ringmaster.dev/local-output-dir";
inline constexpr char kLocalKillAnnotation[] = "ringmaster.dev/local-kill";

}  // namespace ringmaster::api
