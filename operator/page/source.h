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

#include "operator/inspection/connection.h"
#include "operator/inspection/job_inspection.h"
#include "operator/inspection/timeline_gathering.h"

namespace ringmaster::page {

class Source {
 public:
  using Json = nlohmann::json;
  template <class T>
  using Answer = tl::expected<T, std::string>;  // the error is a sentence

  virtual ~Source() = default;
  virtual Answer<std::vector<Json>> Jobs() = 0;
  // The job's pods, and what their sidecars say.
  virtual Answer<inspection::Inspection> Inspect(Json job) = 0;
  // Of the job's pods, as far as they have been seen; nullopt: none has been.
  // The default knows none: for fakes.
  virtual std::optional<int> PriorityOf(const Json& job) {
    (void)job;
    return std::nullopt;
  }
  // What a sidecar has kept of the job's training (docs/contracts.md, section 5); null: none has.
  virtual Json History(const inspection::Inspection& look) = 0;
  // What the job's ranks did in the last seconds. Of `job` its namespace, name and uid are enough.
  // The default has none: for fakes.
  virtual inspection::GatheredTimelines Timeline(const Json& job,
                                                 const inspection::TimelineQuery& query) {
    (void)job, (void)query;
    return {};
  }
  // The last lines of the output of a pod's workers, until `on_text` returns false.
  virtual Answer<void> Log(const std::string& ns, const std::string& pod, int lines,
                           const std::function<bool(std::string_view)>& on_text,
                           std::stop_token stop) = 0;
};

// `to.ns` empty: the jobs of all namespaces.
std::shared_ptr<Source> SourceOf(inspection::Connection to);

}  // namespace ringmaster::page
