#include "operator/page/page_answers.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <stop_token>

#include "operator/inspection/job_trace.h"
#include "operator/page/assets.h"
#include "operator/page/log_end.h"
#include "operator/page/slow_answer.h"
#include "operator/page/timeline_lanes.h"
#include "operator/page/worker_lines.h"

namespace ringmaster::page {
namespace {

using http::Request;
using http::Response;

constexpr int kMostLines = 10'000;
constexpr std::size_t kMostLogBytes = 1 << 20;
constexpr int kMostTimelines = 4;  // at the same time
constexpr int kMostTimelineSeconds = 10;
constexpr std::size_t kMostTimelineBytes = 8 << 20;
// The server's end waits at most this long for a timeline.
constexpr std::chrono::milliseconds kTimelinePatience{3000};
// The page may load nothing from elsewhere, and no other site may embed it.
constexpr char kPolicy[] =
    "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; frame-ancestors "
    "'none'; base-uri 'none'";

std::string Text(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Response Answer(std::string type, std::string body) {
  return {.content_type = std::move(type), .body = std::move(body)};
}

struct LogQuery {
  std::string ns, pod;
  int lines = 0;
  std::optional<int> worker;  // the number in front of the lines that are wanted; none: all lines
};

std::string Unreadable(const std::string& why) { return "the log can't be read: " + why + "\n"; }

// In front of a text of whose beginning something is left out.
constexpr char kLeftOut[] =
    "... (what came before is left out: of a log no more than its last MiB is shown)\n";

std::string Told(const std::string& text, bool cut) { return cut ? kLeftOut + text : text; }

// The last lines of a pod's log.
std::string LogText(Source* source, const LogQuery& query, std::stop_token stop) {
  LogEnd end(kMostLogBytes);
  const auto read = source->Log(
      query.ns, query.pod, query.lines,
      [&](std::string_view more) {
        end.Feed(more);
        return true;
      },
      std::move(stop));
  if (!read) return Unreadable(read.error());
  const std::string text = end.Finish();
  return Told(text, end.cut());
}

// Of one worker, as far as they are among the last lines of its pod.
std::string WorkerLogText(Source* source, const LogQuery& query, std::stop_token stop) {
  WorkerLines kept(*query.worker, static_cast<std::size_t>(query.lines), kMostLogBytes);
  const auto read = source->Log(
      query.ns, query.pod, kMostLines,
      [&](std::string_view more) {
        kept.Feed(more);
        return true;
      },
      std::move(stop));
  if (!read) return Unreadable(read.error());
  const std::string text = kept.Finish();
  return Told(text, kept.cut());
}

Response LogOf(Source* source, const Request& request) {
  LogQuery query{.ns = request.Parameter("namespace"),
                 .pod = request.Parameter("pod"),
                 .lines = std::clamp(std::atoi(request.Parameter("lines").c_str()), 1, kMostLines)};
  if (const std::string worker = request.Parameter("worker"); !worker.empty())
    query.worker = std::atoi(worker.c_str());
  return SlowAnswer("text/plain; charset=utf-8", [source, query](std::stop_token stop) {
    return (query.worker ? WorkerLogText : LogText)(source, query, std::move(stop));
  });
}

// The number of timelines in progress: each needs memory for a while.
std::atomic<int> g_timelines{0};

class TimelineTurn {
 public:
  TimelineTurn() : had_(g_timelines.fetch_add(1) < kMostTimelines) {}
  ~TimelineTurn() { g_timelines.fetch_sub(1); }
  TimelineTurn(const TimelineTurn&) = delete;
  TimelineTurn& operator=(const TimelineTurn&) = delete;
  bool had() const { return had_; }

 private:
  const bool had_;
};

Response TimelineOf(Observatory* observatory, const Request& request) {
  const std::string key = request.Parameter("job");
  const nlohmann::json job = observatory->Metadata(key);
  if (job.is_null()) return Refusal(404, "no job '" + key + "' is there");
  const auto turn = std::make_shared<TimelineTurn>();
  if (!turn->had()) return Refusal(503, "many look at timelines now: try again");
  const int seconds =
      std::clamp(std::atoi(request.Parameter("seconds").c_str()), 1, kMostTimelineSeconds);
  return SlowAnswer("application/json", [source = observatory->source(), job, turn,
                                         seconds](std::stop_token stop) {
    inspection::GatheredTimelines gathered =
        source->Timeline(job, {.seconds = seconds,
                               .tensors = false,
                               .most_bytes = kMostTimelineBytes,
                               .patience = kTimelinePatience,
                               .stop = std::move(stop)});
    const inspection::JobTrace trace = inspection::LayTogether(std::move(gathered.pods));
    return Text(LanesOf(trace, gathered.missing, {.seconds = static_cast<double>(seconds)}));
  });
}

Response StreamOf(Observatory* observatory, const std::string& key, std::function<bool()> holds) {
  const auto next = [observatory, key, holds = std::move(holds),
                     seen = std::uint64_t{0}]() mutable -> std::optional<std::string> {
    if (holds && !holds()) return std::nullopt;
    const nlohmann::json newer = observatory->Newer(key, &seen, {});
    return newer.is_null() ? "" : "data: " + Text(newer) + "\n\n";
  };
  return {.content_type = "text/event-stream", .body = "", .next = next};
}

Response Found(Observatory* observatory, const Request& request, const Admission& admission) {
  if (auto file = FileAnswer(request.path)) return std::move(*file);
  const std::string key = request.Parameter("job");
  if (request.path == "/api/jobs") {
    if (!observatory->ListIsOld()) return Answer("application/json", Text(observatory->Jobs()));
    return SlowAnswer("application/json",
                      [observatory](std::stop_token) { return Text(observatory->Jobs()); });
  }
  if (request.path == "/api/job") {
    const nlohmann::json job = observatory->Job(key);
    if (job.is_null()) return Refusal(404, "no job '" + key + "' has been seen");
    return Answer("application/json", Text(job));
  }
  if (request.path == "/api/stream") return StreamOf(observatory, key, admission.holds);
  if (request.path == "/api/timeline") return TimelineOf(observatory, request);
  if (request.path == "/api/log") {
    if (admission.keeps_from_logs) {
      if (auto refusal = admission.keeps_from_logs(request.Parameter("namespace"))) return *refusal;
    }
    return LogOf(observatory->source(), request);
  }
  return Refusal(404, "there is / and what it loads");
}

}  // namespace

std::optional<Response> FileAnswer(const std::string& path) {
  for (const Asset& asset : kAssets) {
    if (path == asset.path) return Answer(asset.type, {asset.text, asset.bytes});
  }
  return std::nullopt;
}

Response Refusal(int status, const std::string& text) {
  return {.status = status, .body = text + "\n"};
}

Response PageAnswer(Observatory* observatory, const Request& request, const Gate& gate) {
  Admission admission = gate(request);
  Response response =
      admission.instead ? std::move(*admission.instead) : Found(observatory, request, admission);
  auto& headers = response.headers;
  headers.insert(headers.end(), admission.headers.begin(), admission.headers.end());
  headers.insert(headers.end(), {{"Content-Security-Policy", kPolicy},
                                 {"X-Content-Type-Options", "nosniff"},
                                 {"Referrer-Policy", "no-referrer"},
                                 {"Cache-Control", "no-store"}});
  return response;
}

}  // namespace ringmaster::page
