#include "operator/inspection/timeline_gathering.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <tl/expected.hpp>
#include <utility>

#include "common/fields/fields.h"
#include "common/fields/parse.h"
#include "common/sync/mutex.h"
#include "operator/inspection/inspection.h"
#include "operator/inspection/poller.h"
#include "operator/inspection/sidecar_addresses.h"

namespace ringmaster::inspection {
namespace {

using kube::Json;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Of one; a sidecar gives its workers 1.5 s. Who has told nothing is asked for the newest little:
// over a slow link that may come where the rest does not.
constexpr milliseconds kTimelinePatience{6000}, kPatienceForLittle{3000};
// Of the text of each.
constexpr std::size_t kLeastOfPod = 64 << 10, kMostOfPod = 8 << 20;

// What a sidecar reports in addition to its workers' events: names, and its rebuilds.
constexpr std::size_t kBesides = 512 << 10;

// Fetches a sidecar's answer, or says why there is none. `most_bytes` limits what a tenant's pod
// may answer.
using Fetched = tl::expected<std::string, std::string>;
using Fetch = std::function<Fetched(const SidecarAddress& sidecar, const std::string& path,
                                    milliseconds deadline, std::size_t most_bytes)>;

constexpr char kNoTimeline[] = "it did not answer in time, or is of a version without one";

Fetched FetchStraight(const SidecarAddress& sidecar, const std::string& path,
                      const std::string& token, milliseconds deadline, std::size_t most_bytes) {
  auto text = FetchText(sidecar.address, path, token, deadline, most_bytes);
  if (!text) return tl::unexpected(std::string(kNoTimeline));
  return std::move(*text);
}

std::size_t BytesOfPod(const TimelineQuery& query, std::size_t pods) {
  return std::clamp(query.most_bytes / std::max<std::size_t>(1, pods), kLeastOfPod, kMostOfPod);
}

std::string PathOf(const TimelineQuery& query, std::size_t bytes) {
  return fmt::format("/timeline?seconds={}&tensors={}&bytes={}", query.seconds,
                     query.tensors ? 1 : 0, bytes);
}

std::optional<PodTrace> Read(const std::string& text) {
  // One answer at a time, because many may arrive together, and parsed JSON needs many times the
  // memory of its text.
  static sync::Mutex reads;
  const sync::MutexLock lock(&reads);
  return ParsePodTrace(fields::ParseOrDiscard(text));
}

void NameMissing(const std::vector<Json>& pods, const std::vector<SidecarAddress>& asked,
                 GatheredTimelines* gathered) {
  std::set<std::string> reached;
  for (const SidecarAddress& one : asked) reached.insert(one.pod);
  for (const Json& pod : pods) {
    const std::string name = fields::TextAt(pod, "/metadata/name");
    const std::string phase = fields::TextAt(pod, "/status/phase");
    if (phase == "Succeeded" || phase == "Failed" || reached.count(name) > 0) continue;
    gathered->missing.push_back(name + ": no sidecar can be asked there yet");
  }
  for (const PodTrace& pod : gathered->pods) {
    for (const TraceMissing& worker : pod.missing) {
      const std::string rank = worker.rank < 0 ? "" : fmt::format(" (rank {})", worker.rank);
      gathered->missing.push_back(
          fmt::format("{}/{}{}: {}", pod.pod, worker.slot, rank, worker.why));
    }
  }
}

GatheredTimelines Gather(const std::vector<Json>& pods, const std::vector<SidecarAddress>& sidecars,
                         const TimelineQuery& query, const Fetch& fetch) {
  const auto deadline = Clock::now() + query.patience;
  const std::size_t bytes = BytesOfPod(query, sidecars.size());
  std::vector<std::optional<PodTrace>> traces(sidecars.size());
  std::vector<std::string> why_not(sidecars.size(), kNoTimeline);
  const auto ask = [&](std::size_t i, std::size_t most, milliseconds patience) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
    if (left.count() <= 0 || query.stop.stop_requested()) return;
    const auto text =
        fetch(sidecars[i], PathOf(query, most), std::min(patience, left), most + kBesides);
    if (!text) why_not[i] = text.error();
    if (text && !query.stop.stop_requested()) traces[i] = Read(*text);
  };
  InParallel(sidecars.size(), [&](std::size_t i) {
    ask(i, bytes, kTimelinePatience);
    if (!traces[i] && bytes > kLeastOfPod) ask(i, kLeastOfPod, kPatienceForLittle);
  });
  GatheredTimelines gathered;
  for (std::size_t i = 0; i < sidecars.size(); ++i) {
    if (traces[i])
      gathered.pods.push_back(std::move(*traces[i]));
    else
      gathered.missing.push_back(
          fmt::format("{}: its sidecar gave no timeline ({})", sidecars[i].pod,
                      ShortText(why_not[i])));  // a pod's answer may stand in it
  }
  NameMissing(pods, sidecars, &gathered);
  return gathered;
}

}  // namespace

GatheredTimelines GatherTimelines(const Connection& to, const Json& job,
                                  const std::vector<Json>& pods, const TimelineQuery& query) {
  const std::string ns = fields::TextAt(job, "/metadata/namespace");
  const std::vector<SidecarAddress> sidecars = SidecarsOf(pods);
  if (sidecars.empty()) return Gather(pods, sidecars, query, nullptr);
  const std::string token = TokenOf(to, ns, fields::TextAt(job, "/metadata/name"));
  std::atomic<bool> by_server{to.run_dir.empty()};
  return Gather(pods, sidecars, query,
                [&](const SidecarAddress& sidecar, const std::string& path, milliseconds deadline,
                    std::size_t most_bytes) -> Fetched {
                  if (by_server) {
                    auto text = FetchTextByProxy(to.api.get(), ns, sidecar.pod, sidecar.address,
                                                 path, token, deadline);
                    if (text) return std::move(*text);
                    if (!IsRefusalOfTheServer(text.error()))
                      return tl::unexpected("through the API server: " + text.error().message);
                    by_server = false;
                  }
                  return FetchStraight(sidecar, path, token, deadline, most_bytes);
                });
}

GatheredTimelines GatherTimelinesStraight(const std::vector<Json>& pods, const std::string& token,
                                          const TimelineQuery& query) {
  return Gather(pods, SidecarsAtHome(pods), query,
                [&](const SidecarAddress& sidecar, const std::string& path, milliseconds deadline,
                    std::size_t most_bytes) {
                  return FetchStraight(sidecar, path, token, deadline, most_bytes);
                });
}

}  // namespace ringmaster::inspection
