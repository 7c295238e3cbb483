#include "operator/page/source.h"

#include <utility>

#include "common/fields/fields.h"
#include "operator/api/horovod_job.h"
#include "operator/inspection/inspection.h"
#include "operator/page/pod_priorities.h"

namespace ringmaster::page {
namespace {

class OverApi final : public Source {
 public:
  explicit OverApi(inspection::Connection to) : to_(std::move(to)) {}

  Answer<std::vector<Json>> Jobs() override {
    auto list = to_.api->ListAll(kube::HorovodJobs(), to_.ns, {});
    if (!list) return tl::unexpected(list.error().message);
    return std::move(list->items);
  }

  Answer<inspection::Inspection> Inspect(Json job) override {
    auto look = inspection::Inspect(to_, std::move(job));
    if (!look) return tl::unexpected(look.error().message);
    priorities_.Remember(look->pods);
    return std::move(*look);
  }

  std::optional<int> PriorityOf(const Json& job) override { return priorities_.Of(job); }

  Json History(const inspection::Inspection& look) override {
    return inspection::HistoryOf(to_, look);
  }

  inspection::GatheredTimelines Timeline(const Json& job,
                                         const inspection::TimelineQuery& query) override {
    const auto pods = inspection::ReadPods(to_, fields::TextAt(job, "/metadata/namespace"),
                                           fields::TextAt(job, "/metadata/name"));
    if (!pods) return {{}, {pods.error().message}};
    return inspection::GatherTimelines(to_, job, *pods, query);
  }

  Answer<void> Log(const std::string& ns, const std::string& pod, int lines,
                   const std::function<bool(std::string_view)>& on_text,
                   std::stop_token stop) override {
    const auto read = to_.api->PodLogWith(
        ns, pod, {.container = api::kWorkerContainer, .tail = lines}, on_text, std::move(stop));
    if (!read) return tl::unexpected(read.error().message);
    return {};
  }

 private:
  const inspection::Connection to_;
  PodPriorities priorities_;
};

}  // namespace

std::shared_ptr<Source> SourceOf(inspection::Connection to) {
  return std::make_shared<OverApi>(std::move(to));
}

}  // namespace ringmaster::page
