#include "operator/cli/ui/page_answers.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <thread>

#include "common/sync/mutex.h"
#include "operator/cli/ui/assets.h"

namespace ringmaster::ui {
namespace {

using http::Request;
using http::Response;

constexpr int kMostLines = 10'000;
constexpr std::size_t kMostLogBytes = 1 << 20;
// Nothing from anywhere else, and nobody else's page around it.
constexpr char kPolicy[] =
    "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; frame-ancestors "
    "'none'; base-uri 'none'";

std::string Text(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Response Answer(std::string type, std::string body) {
  return {.content_type = std::move(type), .body = std::move(body)};
}

// A pod's log, read by a thread of its own while the server's goes on.
class LogRead {
 public:
  LogRead(Source* source, std::string ns, std::string pod, int lines)
      : thread_([this, source, ns = std::move(ns), pod = std::move(pod),
                 lines](std::stop_token stop) { Read(source, ns, pod, lines, std::move(stop)); }) {}

  // As http::Response::next.
  std::optional<std::string> Next() {
    sync::MutexLock lock(&mu_);
    if (!done_) return "";
    if (std::exchange(told_, true)) return std::nullopt;
    return text_.empty() ? std::nullopt : std::optional(std::move(text_));
  }

 private:
  void Read(Source* source, const std::string& ns, const std::string& pod, int lines,
            std::stop_token stop) {
    std::string text;
    const auto read = source->Log(
        ns, pod, lines,
        [&](std::string_view more) {
          text.append(more.substr(0, kMostLogBytes - std::min(kMostLogBytes, text.size())));
          return text.size() < kMostLogBytes;
        },
        std::move(stop));
    if (!read) text = "the log can't be read: " + read.error() + "\n";
    sync::MutexLock lock(&mu_);
    text_ = std::move(text);
    done_ = true;
  }

  sync::Mutex mu_;
  std::string text_ GUARDED_BY(mu_);
  bool done_ GUARDED_BY(mu_) = false;
  bool told_ GUARDED_BY(mu_) = false;
  std::jthread thread_;  // last: uses the others
};

Response LogOf(Source* source, const Request& request) {
  const int lines = std::clamp(std::atoi(request.Parameter("lines").c_str()), 1, kMostLines);
  auto read = std::make_shared<LogRead>(source, request.Parameter("namespace"),
                                        request.Parameter("pod"), lines);
  return {.content_type = "text/plain; charset=utf-8", .body = "", .next = [read] {
            return read->Next();
          }};
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
  if (request.path == "/api/jobs") return Answer("application/json", Text(observatory->Jobs()));
  if (request.path == "/api/job") {
    const nlohmann::json job = observatory->Job(key);
    if (job.is_null()) return Refusal(404, "no job '" + key + "' has been seen");
    return Answer("application/json", Text(job));
  }
  if (request.path == "/api/stream") return StreamOf(observatory, key, admission.holds);
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

}  // namespace ringmaster::ui
