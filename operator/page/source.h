// The source of the page's facts: an API server that a command connects to, or the caches of an
// operator.
//
// Thread rule: any thread, and several at once. Calls block, each for a limited time.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "operator/cli/connection.h"
#include "operator/cli/job_inspection.h"
#include "operator/cli/timeline_gathering.h"

namespace ringmaster::ui {

class Source {
 public:
  using Json = nlohmann::json;
  template <class T>
  using Answer = tl::expected<T, std::string>;  // the error is a sentence

  virtual ~Source() = default;
  virtual Answer<std::vector<Json>> Jobs() = 0;
  // The job's pods, and their sidecars' answers.
  virtual Answer<cli::Inspection> Inspect(Json job) = 0;
  // The priority of the job's pods; nullopt if none was seen. The default implementation, for
  // fakes, knows none.
  virtual std::optional<int> PriorityOf(const Json& job) {
    (void)job;
    return std::nullopt;
  }
  // The history of the job's training that a sidecar has kept (docs/contracts.md, section 5); null
  // if there is none.
  virtual Json History(const cli::Inspection& look) = 0;
  // What the job's ranks did in the last seconds. `job` needs only namespace, name and uid. The
  // default implementation, for fakes, has nothing.
  virtual cli::GatheredTimelines Timeline(const Json& job, const cli::TimelineQuery& query) {
    (void)job, (void)query;
    return {};
  }
  // The last lines of the output of a pod's workers, until `on_text` returns false.
  virtual Answer<void> Log(const std::string& ns, const std::string& pod, int lines,
                           const std::function<bool(std::string_view)>& on_text,
                           std::stop_token stop) = 0;
};

// `to.ns` empty: the jobs of all namespaces.
std::shared_ptr<Source> SourceOf(cli::Connection to);

}  // namespace ringmaster::ui
