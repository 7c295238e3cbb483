#include "operator/cli/ui/source.h"

#include <utility>

#include "common/fields/fields.h"
#include "operator/api/horovod_job.h"
#include "operator/cli/inspection.h"
#include "operator/cli/ui/pod_priorities.h"

namespace ringmaster::ui {
namespace {

class OverApi final : public Source {
 public:
  explicit OverApi(cli::Connection to) : to_(std::move(to)) {}

  Answer<std::vector<Json>> Jobs() override {
    auto list = to_.api->ListAll(kube::HorovodJobs(), to_.ns, {});
    if (!list) return tl::unexpected(list.error().message);
    return std::move(list->items);
  }

  Answer<cli::Inspection> Inspect(Json job) override {
    auto look = cli::Inspect(to_, std::move(job));
    if (!look) return tl::unexpected(look.error().message);
    priorities_.Remember(look->pods);
    return std::move(*look);
  }

  std::optional<int> PriorityOf(const Json& job) override { return priorities_.Of(job); }

  Json History(const cli::Inspection& look) override { return cli::HistoryOf(to_, look); }

  cli::GatheredTimelines Timeline(const Json& job, const cli::TimelineQuery& query) override {
    const auto pods = cli::ReadPods(to_, fields::TextAt(job, "/metadata/namespace"),
                                    fields::TextAt(job, "/metadata/name"));
    if (!pods) return {{}, {pods.error().message}};
    return cli::GatherTimelines(to_, job, *pods, query);
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
  const cli::Connection to_;
  PodPriorities priorities_;
};

}  // namespace

std::shared_ptr<Source> SourceOf(cli::Connection to) {
  return std::make_shared<OverApi>(std::move(to));
}

}  // namespace ringmaster::ui
