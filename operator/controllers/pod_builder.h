// The worker pod of a job, and what the planner wants to know of one. Pure functions on JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "operator/api/horovod_job.h"
#include "operator/controllers/pod_cluster.h"
#include "operator/planner/proof.h"
#include "operator/planner/snapshot.h"

namespace ringmaster::controllers {

struct PodOptions {
  std::string sidecar_image = "ringmaster.dev/sidecar:latest";
  std::string sidecar_target;  // RINGMASTER_OPERATOR; empty: none
  std::string log_format;      // of sidecars; empty: their default
  bool gang_gate = false;      // pods wait for the operator before they look for a node
  // A real cluster (pod_cluster.h). False: the local one, whose pods are processes of this machine.
  bool cluster = false;
  // All below: on a real cluster only.
  bool tls = true;                // mutual TLS with the certificate in the job's Secret
  std::string image_pull_policy;  // of our containers; empty: Kubernetes' default
  nlohmann::json sidecar_resources = DefaultSidecarResources();
};

inline constexpr char kSidecarContainer[] = "ringmaster-sidecar";
inline constexpr char kInstallContainer[] = "ringmaster-install";
inline constexpr char kJobUidLabel[] = "ringmaster.dev/job-uid";

// Owner reference, labels, init container, sidecar, the user's containers with the worker's command
// wrapped by the launcher, environment of docs/contracts.md section 1, volumes.
nlohmann::json BuildPod(const api::HorovodJob& job, int index, const PodOptions& options);

// index -1: not a worker pod of ours.
planner::PodFacts ReadPod(const nlohmann::json& pod);
// With what is known of its node: sets proven_dead and proof.
void Prove(planner::PodFacts* pod, const planner::NodeEvidence& evidence);

// metadata.ownerReferences names `uid` as the controller.
bool IsOwnedBy(const nlohmann::json& object, const std::string& uid);
// "namespace/name" of the job that owns the pod; of a pod without such an owner: of the job that it
// is labelled with. Labels may be taken off by anybody who may write pods.
std::string JobKeyOf(const nlohmann::json& pod);
// By which a pod of the job is found.
nlohmann::json LabelsOf(const api::HorovodJob& job, int index);
bool HasLabels(const nlohmann::json& pod, const nlohmann::json& labels);
// nullopt: no pod of the job is called that.
std::optional<int> IndexOf(const api::HorovodJob& job, const std::string& pod);
nlohmann::json OwnerReference(const std::string& job_name, const std::string& job_uid);

}  // namespace ringmaster::controllers
