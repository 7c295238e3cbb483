#include "operator/inspection/job_inspection.h"

#include <fmt/format.h>

#include <tuple>

#include "common/fields/fields.h"

namespace ringmaster::inspection {

using Json = nlohmann::json;

bool KnowsMore(const SidecarStatus& a, const SidecarStatus& b) {
  const auto knowledge = [](const SidecarStatus& status) {
    return std::tuple(status.epoch, status.coordinator, status.ranks.size(),
                      status.rebuilds.size());
  };
  return knowledge(a) > knowledge(b);
}

const SidecarStatus* Teller(const Inspection& inspection) {
  const SidecarStatus* teller = nullptr;
  for (const auto& [pod, status] : inspection.answers)
    if (teller == nullptr || KnowsMore(status, *teller)) teller = &status;
  return teller;
}

std::string SilentText(const Inspection& inspection) {
  const auto& silent = inspection.silent;
  if (silent.empty()) return "";
  const std::size_t asked = silent.size() + inspection.answers.size();
  return fmt::format("{} of {} sidecars gave no answer; {}{}", silent.size(), asked, silent.front(),
                     silent.size() > 1 ? "; ..." : "");
}

Json WithWorkers(const Inspection& inspection) {
  Json job = inspection.job;
  Json list = Json::array();
  for (const Json& pod : inspection.pods) {
    std::string name = fields::TextAt(pod, "/metadata/name");
    Json entry = {{"name", name},
                  {"phase", fields::TextAt(pod, "/status/phase")},
                  {"node", fields::TextAt(pod, "/spec/nodeName")},
                  {"uid", fields::TextAt(pod, "/metadata/uid")},
                  {"workers", Json::array()}};
    auto answer = inspection.answers.find(name);
    if (answer != inspection.answers.end()) {
      entry["coordinator"] = answer->second.coordinator;
      entry["state"] = answer->second.state;
      entry["epoch"] = answer->second.epoch;
      entry["stalls"] = job::ToJson(answer->second.stalls);
      for (const WorkerStatus& worker : answer->second.workers) {
        entry["workers"].push_back({{"slot", worker.slot},
                                    {"incarnation", worker.incarnation},
                                    {"pid", worker.pid},
                                    {"rank", worker.rank},
                                    {"state", worker.state},
                                    {"step", worker.step},
                                    {"standby", worker.standby}});
      }
    }
    list.push_back(entry);
  }
  job["status"]["pods"] = list;
  return job;
}

}  // namespace ringmaster::inspection
