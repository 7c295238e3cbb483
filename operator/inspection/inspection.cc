#include "operator/inspection/inspection.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <iterator>
#include <optional>
#include <utility>

#include "common/fields/fields.h"
#include "common/plain_text/plain_text.h"
#include "common/sync/mutex.h"
#include "operator/api/labels.h"
#include "operator/inspection/poller.h"
#include "operator/inspection/sidecar_addresses.h"
#include "operator/inspection/sidecar_token.h"
#include "operator/inspection/troubles.h"

namespace ringmaster::inspection {
namespace {

using kube::Json;

constexpr std::chrono::milliseconds kStatusPatience{500};
constexpr std::chrono::milliseconds kHistoryPatience{2000};

struct Question {
  SidecarAddress sidecar;
  std::optional<SidecarStatus> answer;
  std::string why_not;
};

// A pod's answer may stand in a reason.
std::string Shown(std::string why_not) {
  constexpr std::size_t kMost = 600;
  return plain_text::CutWithDots(plain_text::WithoutControls(std::move(why_not)), kMost);
}

std::string NoAnswerAt(const SidecarAddress& sidecar) {
  return fmt::format("no status from {} within {} ms", sidecar.address, kStatusPatience.count());
}

// Asks by way of the API server on a cluster, because pods' addresses are mostly unreachable from
// outside; directly otherwise, or if the server doesn't reach the pods. After several failures in a
// row the server is not tried again, because half a second for each of a thousand pods would be
// long.
void AskAll(const Connection& to, const std::string& ns, const std::string& token,
            std::vector<Question>* questions) {
  constexpr int kInVain = 3;  // one dead pod does not mean that the others are unreachable
  std::atomic<bool> by_server{to.run_dir.empty()};
  std::atomic<int> in_vain{0};
  InParallel(questions->size(), [&](size_t i) {
    Question& one = (*questions)[i];
    std::string by_proxy;
    if (by_server) {
      auto status =
          FetchStatusByProxy(to.api.get(), ns, one.sidecar.pod, one.sidecar.address, token);
      if (status) {
        one.answer = std::move(*status);
        return;
      }
      by_proxy = "through the API server: " + status.error().message;
      if (IsRefusalOfTheServer(status.error())) by_server = false;
    }
    if (by_server && in_vain >= kInVain) {
      one.why_not = by_proxy;
      return;
    }
    one.answer = FetchStatus(one.sidecar.address, token, kStatusPatience);
    if (one.answer) {
      in_vain = 0;
      return;
    }
    ++in_vain;
    one.why_not = by_proxy + (by_proxy.empty() ? "" : "; straight: ") + NoAnswerAt(one.sidecar);
  });
}

std::vector<Question> QuestionsTo(std::vector<SidecarAddress> sidecars) {
  std::vector<Question> questions;
  for (SidecarAddress& sidecar : sidecars) questions.push_back({std::move(sidecar), {}, ""});
  return questions;
}

std::map<std::string, SidecarStatus> AnswersTo(std::vector<Question> questions) {
  std::map<std::string, SidecarStatus> answers;
  for (Question& one : questions)
    if (one.answer) answers[one.sidecar.pod] = std::move(*one.answer);
  return answers;
}

// Keeps only the sidecar's facts about itself and its own workers.
void ForgetTheView(SidecarStatus* status) {
  status->ranks = {};
  status->pods = {};
  status->rebuilds = {};
}

std::vector<Json> EventsAbout(const Connection& to, const std::string& ns, const Json& object) {
  const auto list = to.api->ListAll(
      kube::Events(), ns,
      {.field_selector = "regarding.uid=" + fields::TextAt(object, "/metadata/uid")});
  if (list) return list->items;
  std::fprintf(stderr, "ringmaster: events can't be listed: %s\n", list.error().message.c_str());
  return {};
}

}  // namespace

kube::Result<Json> ReadJob(const Connection& to, const std::string& ns, const std::string& name) {
  auto job = to.api->Get(kube::HorovodJobs(), ns, name);
  if (!job) return tl::unexpected(job.error());
  return std::move(*job);
}

kube::Result<std::vector<Json>> ReadPods(const Connection& to, const std::string& ns,
                                         const std::string& job) {
  auto list = to.api->ListAll(
      kube::Pods(), ns,
      {.label_selector = fmt::format("{}={},{}", api::kJobNameLabel, job, api::kWorkerSelector)});
  if (!list) return tl::unexpected(list.error());
  return std::move(list->items);
}

kube::Result<Inspection> Inspect(const Connection& to, Json job) {
  const std::string ns = fields::TextAt(job, "/metadata/namespace");
  const std::string name = fields::TextAt(job, "/metadata/name");
  auto pods = ReadPods(to, ns, name);
  if (!pods) return tl::unexpected(pods.error());
  // A job of this name that was deleted a moment ago may still have pods.
  const std::string uid = fields::TextAt(job, "/metadata/uid");
  std::erase_if(*pods, [&](const Json& pod) {
    const std::string of = fields::Text(fields::At(pod, "/metadata/labels"), api::kJobUidLabel);
    return !of.empty() && of != uid;
  });
  Inspection found{std::move(job), std::move(*pods), {}, {}, {}};
  std::vector<Question> questions = QuestionsTo(SidecarsOf(found.pods));
  if (!questions.empty()) AskAll(to, ns, TokenOf(to, ns, name), &questions);
  for (const Question& one : questions)
    if (!one.answer) found.silent.push_back(one.sidecar.pod + ": " + Shown(one.why_not));
  found.answers = AnswersTo(std::move(questions));
  return found;
}

std::map<std::string, SidecarStatus> AskSidecars(const std::vector<Json>& pods,
                                                 const std::string& token) {
  std::vector<Question> questions = QuestionsTo(SidecarsAtHome(pods));
  sync::Mutex mu;
  SidecarStatus* teller = nullptr;  // guarded by mu
  InParallel(questions.size(), [&](size_t i) {
    auto& answer = questions[i].answer;
    answer = FetchStatus(questions[i].sidecar.address, token, kStatusPatience);
    if (!answer) return;
    const sync::MutexLock lock(&mu);
    SidecarStatus* knows_less = &*answer;
    if (teller == nullptr || KnowsMore(*answer, *teller)) std::swap(teller, knows_less);
    if (knows_less != nullptr) ForgetTheView(knows_less);
  });
  return AnswersTo(std::move(questions));
}

std::string OldestHistory(const Inspection& inspection) {
  std::string oldest;
  int64_t since = 0;
  for (const auto& [pod, status] : inspection.answers) {
    if (status.history_since == 0 || (!oldest.empty() && status.history_since >= since)) continue;
    oldest = pod;
    since = status.history_since;
  }
  return oldest;
}

Json HistoryFrom(const Inspection& inspection, const std::string& token) {
  for (const SidecarAddress& one : SidecarsAtHome(inspection.pods)) {
    if (one.pod == OldestHistory(inspection))
      return FetchHistory(one.address, token, kHistoryPatience);
  }
  return nullptr;
}

Json HistoryOf(const Connection& to, const Inspection& inspection) {
  const std::string pod = OldestHistory(inspection);
  const std::string ns = fields::TextAt(inspection.job, "/metadata/namespace");
  for (const SidecarAddress& one : SidecarsOf(inspection.pods)) {
    if (one.pod != pod) continue;
    const std::string token = TokenOf(to, ns, fields::TextAt(inspection.job, "/metadata/name"));
    if (to.run_dir.empty()) {
      auto history = FetchByProxy(to.api.get(), ns, pod, one.address, "/history", token);
      if (history) return std::move(*history);
    }
    return FetchHistory(one.address, token, kHistoryPatience);
  }
  return nullptr;
}

kube::Result<Inspection> Look(const Connection& to, const std::string& name) {
  auto job = ReadJob(to, to.ns, name);
  if (!job) return tl::unexpected(job.error());
  return Inspect(to, std::move(*job));
}

void SaySilent(const Inspection& inspection) {
  const std::string text = SilentText(inspection);
  if (!text.empty()) std::fprintf(stderr, "ringmaster: %s\n", text.c_str());
}

void AddEvents(const Connection& to, Inspection* inspection) {
  constexpr size_t kMostPods = 20;
  const std::string ns = fields::TextAt(inspection->job, "/metadata/namespace");
  std::vector<const Json*> objects;
  for (const Json& pod : inspection->pods) objects.push_back(&pod);
  std::stable_partition(objects.begin(), objects.end(),
                        [&](const Json* pod) { return !IsWell(*pod, *inspection); });
  if (objects.size() > kMostPods) {
    std::fprintf(stderr,
                 "ringmaster: events of %zu of %zu pods were read, those that are not well first\n",
                 kMostPods, objects.size());
    objects.resize(kMostPods);
  }
  objects.push_back(&inspection->job);
  std::vector<std::vector<Json>> events(objects.size());
  InParallel(events.size(), [&](size_t i) { events[i] = EventsAbout(to, ns, *objects[i]); });
  for (std::vector<Json>& about : events)
    std::move(about.begin(), about.end(), std::back_inserter(inspection->events));
}

std::string TokenOf(const Connection& to, const std::string& ns, const std::string& job) {
  const auto text = [](JobToken read) { return std::move(read.token); };
  const auto token = to.run_dir.empty() ? SidecarTokenOfJob(to.api.get(), ns, job).map(text)
                                        : SidecarTokenOfRun(to.run_dir);
  if (token) return *token;
  std::fprintf(stderr, "ringmaster: the sidecars of %s can't be asked: %s\n", job.c_str(),
               token.error().message.c_str());
  return "";
}

}  // namespace ringmaster::inspection
