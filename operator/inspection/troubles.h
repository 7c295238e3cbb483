// What holds a job up, in the words of its conditions, and problems of its pods. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "operator/api/time.h"
#include "operator/inspection/job_inspection.h"

namespace ringmaster::inspection {

struct Trouble {
  std::string type;  // type of the condition: "Scheduled", "Failed", ...
  std::string reason;
  std::string message;
  std::string since;  // RFC 3339
};

// The conditions that report a problem; the one that explains the others comes first. Empty: there
// is no problem.
std::vector<Trouble> TroublesOf(const nlohmann::json& job);

// "0 of 2 pods ready, ... (WaitingForInit, for 4s)"
std::string TroubleText(const Trouble& trouble, api::Time now);

// Whether nothing is wrong with a pod of the job.
bool IsWell(const nlohmann::json& pod, const Inspection& found);
// A line for each pod with a problem.
std::vector<std::string> PodTroubles(const Inspection& found, api::Time now);

// Describes a job whose sidecars have several versions, or whose workers' library has another
// version than their sidecar; empty if all versions are equal.
std::string VersionsText(const Inspection& found);

// "for 3m" since then; empty if the time is unknown.
std::string For(const std::string& since, api::Time now);
// "45s", "3m", "2h", "5d"
std::string Age(const std::string& since, api::Time now);

struct EventLine {
  std::string at;  // when it was last seen
  bool warning = false;
  std::string reason;
  std::string about;  // "pod digits-worker-2"; empty: the job
  int count = 1;
  std::string note;
};

// The newest comes last.
std::vector<EventLine> EventLines(const std::vector<nlohmann::json>& events);

}  // namespace ringmaster::inspection
