// The objects of the job and its pods, and the kubelets: they start and end the containers of pods
// as the API server says, and write there what has become of them.
//
// Owner: World. One thread.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "common/membership/quorum_record.h"
#include "tests/sim/api_server.h"
#include "tests/sim/decided_views.h"
#include "tests/sim/fault_plan.h"
#include "tests/sim/invariants.h"
#include "tests/sim/journal.h"
#include "tests/sim/launchers.h"
#include "tests/sim/network.h"
#include "tests/sim/operators.h"
#include "tests/sim/pod.h"
#include "tests/sim/pods.h"
#include "tests/sim/script.h"
#include "tests/sim/sidecars.h"
#include "tests/sim/timeline.h"
#include "tests/sim/workers.h"

namespace ringmaster::app::sim {

class Kubelets {
 public:
  // All of them outlive it.
  struct Parts {
    Random& random;
    Timeline& time;
    Journal& journal;
    Network& network;
    const Script& script;
    const FaultPlan& plan;
    DecidedViews& views;
    JobSize& job;
    Pods& pods;
    ApiServer& api;
    Operators& operators;
    Invariants& invariants;
    Workers& workers;
    Launchers& launchers;
    Sidecars& sidecars;
  };
  explicit Kubelets(const Parts& parts) : parts_(parts) {}

  void MakeJob();
  void PatchJob(const json& spec);
  bool JobIs(const std::string& condition) const;
  std::string JobStatus() const;

  void OnApiChange(const kube::Resource& resource, const Change& change);
  // All its processes end, for good.
  void KillPod(int pod, const std::string& why);
  // All containers have ended, and the kubelet says so: that is proof.
  void TellEnd(int pod);

 private:
  void OnJobObject(const json& object);
  void OnRecordObject(const json& object, bool deleted);
  void OnPodObject(const json& object, bool deleted);
  void AddPod(const json& object);
  void PlacePod(int pod);
  void SeeDeletion(int pod);

  const Parts parts_;
  std::optional<membership::QuorumRecord> record_;  // as the API server has it
};

}  // namespace ringmaster::app::sim
