// Workloads as Kueue writes them, and the job that they are for.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "operator/api/horovod_job.h"
#include "operator/api/testing/job_object.h"
#include "operator/kueue/workload.h"

namespace ringmaster::kueue::testing {

// Four pods, at least two, in queue "gpus".
inline api::HorovodJob QueuedJob(const nlohmann::json& spec = nlohmann::json::object()) {
  nlohmann::json object = api::testing::JobObject("train", 4, 2);
  object["metadata"].update({{"namespace", "team"}, {"uid", "job-uid"}});
  object["spec"]["runPolicy"]["schedulingPolicy"]["queue"] = "gpus";
  object["spec"].merge_patch(spec);
  return api::ParseHorovodJob(object).value();
}

inline nlohmann::json Pod() {
  return {{"spec",
           {{"nodeSelector", {{"arch", "a100"}}},
            {"containers",
             {{{"name", "worker"},
               {"image", "trainer"},
               {"command", {"python3", "train.py"}},
               {"env", {{{"name", "TOKEN"}, {"value", "secret"}}}},
               {"resources", {{"limits", {{"nvidia.com/gpu", "1"}}}}}}}}}}};
}

inline nlohmann::json Waiting(const api::HorovodJob& job) {
  nlohmann::json workload = BuildWorkload(job, Pod(), std::nullopt);
  workload["metadata"].update({{"uid", "workload-uid"}, {"resourceVersion", "7"}});
  return workload;
}

inline void SetCondition(nlohmann::json* workload, const char* type, bool on,
                         const std::string& reason = "Any", const std::string& message = "words") {
  nlohmann::json& list = (*workload)["status"]["conditions"];
  for (nlohmann::json& condition : list) {
    if (condition["type"] != type) continue;
    condition.update({{"status", on ? "True" : "False"}, {"reason", reason}, {"message", message}});
    return;
  }
  list.push_back({{"type", type},
                  {"status", on ? "True" : "False"},
                  {"reason", reason},
                  {"message", message}});
}

inline nlohmann::json AdmittedWith(const api::HorovodJob& job, int pods) {
  nlohmann::json workload = Waiting(job);
  SetCondition(&workload, kQuotaReserved, true);
  SetCondition(&workload, kAdmitted, true);
  workload["status"]["admission"] = {
      {"clusterQueue", "cluster"},
      {"podSetAssignments",
       {{{"name", kPodSet},
         {"count", pods},
         {"flavors", {{"cpu", "spot"}, {"nvidia.com/gpu", "spot"}}}}}}};
  return workload;
}

inline nlohmann::json Evicted(nlohmann::json workload, const std::string& reason) {
  SetCondition(&workload, kEvicted, true, reason, "for another one");
  return workload;
}

}  // namespace ringmaster::kueue::testing
