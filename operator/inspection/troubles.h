// What holds a job up, in the words of its conditions; and what is wrong with its pods. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "operator/api/time.h"
#include "operator/inspection/job_inspection.h"

namespace ringmaster::inspection {

struct Trouble {
  std::string type;  // of the condition: "Scheduled", "Failed", ...
  std::string reason;
  std::string message;
  std::string since;  // RFC 3339
};

// The conditions that say that something is not as it should be; the one that explains the others
// comes first. Empty: none.
std::vector<Trouble> TroublesOf(const nlohmann::json& job);

// "0 of 2 pods ready, ... (WaitingForInit, for 4s)"
std::string TroubleText(const Trouble& trouble, api::Time now);

// A line for each pod that is not as it should be.
std::vector<std::string> PodTroubles(const Inspection& found, api::Time now);

// What a job says whose sidecars are of several versions, or whose workers have a library of
// another version than their sidecar; empty: all are of one.
std::string VersionsText(const Inspection& found);

// "for 3m" since then; empty where the time is not known.
std::string For(const std::string& since, api::Time now);
// "45s", "3m", "2h", "5d"
std::string Age(const std::string& since, api::Time now);

struct EventLine {
  std::string at;  // when it was seen last
  bool warning = false;
  std::string reason;
  std::string about;  // "pod digits-worker-2"; empty: the job
  int count = 1;
  std::string note;
};

// The newest last.
std::vector<EventLine> EventLines(const std::vector<nlohmann::json>& events);

}  // namespace ringmaster::inspection
