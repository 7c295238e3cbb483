// Takes the page's facts from an operator's caches and from the sidecars. It reads from the API
// server only a job's Secret (its token opens the sidecars' status) and logs.
//
// Thread rule: that of page::Source.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/sync/mutex.h"
#include "operator/app/operator_metrics.h"
#include "operator/kube/kube_api.h"
#include "operator/page/pod_priorities.h"
#include "operator/page/source.h"

namespace ringmaster::daemon {

class PageSource final : public page::Source {
 public:
  using Clock = std::chrono::steady_clock;

  PageSource(std::function<app::OperatorSample()> sample, std::shared_ptr<kube::KubeApi> api,
             std::function<Clock::time_point()> now = Clock::now)
      : sample_(std::move(sample)), api_(std::move(api)), now_(std::move(now)) {}

  Answer<std::vector<Json>> Jobs() override;
  // The pods are those of the newest Jobs().
  Answer<inspection::Inspection> Inspect(Json job) override;
  std::optional<int> PriorityOf(const Json& job) override { return priorities_.Of(job); }
  Json History(const inspection::Inspection& look) override;
  inspection::GatheredTimelines Timeline(const Json& job,
                                         const inspection::TimelineQuery& query) override;
  Answer<void> Log(const std::string& ns, const std::string& pod, int lines,
                   const std::function<bool(std::string_view)>& on_text,
                   std::stop_token stop) override;

 private:
  struct KnownToken {
    std::string token;
    Clock::time_point until;
  };
  std::vector<Json> PodsOf(const Json& job) const;
  // Empty if the job has none, or if it can't be read.
  std::string TokenOf(const Json& job);
  KnownToken ReadToken(const Json& job) const;

  const std::function<app::OperatorSample()> sample_;
  const std::shared_ptr<kube::KubeApi> api_;
  const std::function<Clock::time_point()> now_;
  page::PodPriorities priorities_;
  mutable sync::Mutex mu_;
  std::vector<runtime::ObjectPtr> pods_ GUARDED_BY(mu_);
  std::map<std::string, KnownToken> tokens_ GUARDED_BY(mu_);  // by job uid
};

}  // namespace ringmaster::daemon
