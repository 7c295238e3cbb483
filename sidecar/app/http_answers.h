// What the sidecar answers to GET. Probes and metrics are for everybody who reaches the port; all
// else is for those who have the job's token (common/ring_key), where the job has a key.
//
// Pure: what is asked for comes from its caller.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "sidecar/app/worker_timelines.h"
#include "sidecar/health/http_server.h"

namespace ringmaster::app {

struct HttpSubjects {
  std::function<bool()> healthy, ready;
  std::function<std::string()> metrics, history;
  // `rebuilds`: with so many of the newest changes of the job's members.
  std::function<std::string(std::size_t rebuilds)> status;
  // Agent::Timeline()
  std::function<std::function<std::optional<std::string>()>(const TimelineAsk&)> timeline;
};

// `ring_key`: 32 bytes; empty: the job has none, and nothing is closed.
health::HttpResponse Answer(const health::HttpRequest& request, const HttpSubjects& subjects,
                            const std::string& ring_key);

}  // namespace ringmaster::app
