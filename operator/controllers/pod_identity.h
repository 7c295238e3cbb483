// Tells which job a pod belongs to, and by which name and labels it is found. Pure functions on
// JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "operator/api/horovod_job.h"

namespace ringmaster::controllers {

// metadata.ownerReferences names `uid` as the controller.
bool IsOwnedBy(const nlohmann::json& object, const std::string& uid);
// "namespace/name" of the job that owns the pod or, if no job owns it, of the job in its labels.
// The owner counts first, because anyone who may write pods can remove labels.
std::string JobKeyOf(const nlohmann::json& pod);
// The labels by which a pod of the job is found.
nlohmann::json LabelsOf(const api::HorovodJob& job, int index);
bool HasLabels(const nlohmann::json& pod, const nlohmann::json& labels);
// nullopt if no pod of the job has such a name.
std::optional<int> IndexOf(const std::string& job_name, const std::string& pod);
nlohmann::json OwnerReference(const std::string& job_name, const std::string& job_uid);

}  // namespace ringmaster::controllers
