#include "operator/cli/inspection.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <optional>
#include <thread>

#include "common/fields/fields.h"
#include "operator/api/labels.h"
#include "operator/cli/kube_failure.h"
#include "operator/cli/poller.h"
#include "operator/cli/sidecar_token.h"

namespace ringmaster::cli {
namespace {

using kube::Json;

constexpr std::chrono::milliseconds kStatusPatience{500};
constexpr size_t kAskedAtOnce = 32;

struct Question {
  std::string pod;
  std::string address;
  std::optional<SidecarStatus> answer;
};

// One that doesn't answer holds up no other.
void InParallel(size_t count, const std::function<void(size_t)>& act) {
  std::atomic<size_t> next{0};
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < std::min(kAskedAtOnce, count); ++i) {
    threads.emplace_back([&] {
      for (size_t one = next++; one < count; one = next++) act(one);
    });
  }
}

// On a cluster through the API server, as pods' addresses are mostly of the cluster alone; else, or
// where that is not allowed, straight.
void AskAll(const Connection& to, const std::string& ns, const std::string& token,
            std::vector<Question>* questions) {
  std::atomic<bool> by_server{to.run_dir.empty()};
  InParallel(questions->size(), [&](size_t i) {
    Question& one = (*questions)[i];
    if (by_server) {
      auto status = FetchStatusByProxy(to.api.get(), ns, one.pod, one.address, token);
      if (status) {
        one.answer = std::move(*status);
        return;
      }
      if (status.error().code == kube::ErrorCode::kForbidden) by_server = false;
    }
    one.answer = FetchStatus(one.address, token, kStatusPatience);
  });
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

Outcome<Json> ReadJob(const Connection& to, const std::string& ns, const std::string& name) {
  auto job = to.api->Get(kube::HorovodJobs(), ns, name);
  if (!job) return tl::unexpected(FromKube(job.error()));
  return std::move(*job);
}

Outcome<std::vector<Json>> ReadPods(const Connection& to, const std::string& ns,
                                    const std::string& job) {
  auto list = to.api->ListAll(
      kube::Pods(), ns,
      {.label_selector = fmt::format("{}={},{}", api::kJobNameLabel, job, api::kWorkerSelector)});
  if (!list) return tl::unexpected(FromKube(list.error()));
  return std::move(list->items);
}

Outcome<Inspection> Inspect(const Connection& to, Json job) {
  const std::string ns = fields::TextAt(job, "/metadata/namespace");
  const std::string name = fields::TextAt(job, "/metadata/name");
  auto pods = ReadPods(to, ns, name);
  if (!pods) return tl::unexpected(pods.error());
  Inspection found{std::move(job), std::move(*pods), {}, {}};
  std::vector<Question> questions;
  for (const Json& pod : found.pods) {
    std::string address =
        fields::Text(fields::At(pod, "/metadata/annotations"), api::kHttpAnnotation);
    const bool runs = fields::TextAt(pod, "/status/phase") == "Running";
    if (runs && !address.empty())
      questions.push_back({fields::TextAt(pod, "/metadata/name"), std::move(address), {}});
  }
  if (!questions.empty()) AskAll(to, ns, TokenOf(to, ns, name), &questions);
  for (Question& one : questions)
    if (one.answer) found.answers[one.pod] = std::move(*one.answer);
  return found;
}

Outcome<Inspection> Look(const Connection& to, const std::string& name) {
  auto job = ReadJob(to, to.ns, name);
  if (!job) return tl::unexpected(job.error());
  return Inspect(to, std::move(*job));
}

void AddEvents(const Connection& to, Inspection* inspection) {
  constexpr size_t kMostPods = 20;
  const std::string ns = fields::TextAt(inspection->job, "/metadata/namespace");
  inspection->events = EventsAbout(to, ns, inspection->job);
  size_t pods = 0;
  for (const Json& pod : inspection->pods) {
    if (++pods > kMostPods) break;
    for (Json& event : EventsAbout(to, ns, pod)) inspection->events.push_back(std::move(event));
  }
}

std::string TokenOf(const Connection& to, const std::string& ns, const std::string& job) {
  const auto token =
      to.run_dir.empty() ? SidecarTokenOfJob(to.api.get(), ns, job) : SidecarTokenOfRun(to.run_dir);
  if (token) return *token;
  std::fprintf(stderr, "ringmaster: the sidecars of %s can't be asked: %s\n", job.c_str(),
               token.error().message.c_str());
  return "";
}

}  // namespace ringmaster::cli
