#include "sidecar/app/http_answers.h"

#include <charconv>
#include <utility>

#include "common/ring_key/ring_key.h"

namespace ringmaster::app {
namespace {

using health::HttpResponse;

// As common/http has names of headers.
constexpr char kTokenHeader[] = "ringmaster-token";

// nullopt: `text` is no number of seconds that is allowed.
std::optional<int> SecondsIn(const std::string& text) {
  int seconds = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, seconds);
  const bool allowed = seconds >= 1 && seconds <= TimelineAsk::kMostSeconds;
  return read.ec == std::errc() && read.ptr == end && allowed ? std::optional(seconds)
                                                              : std::nullopt;
}

// The answer waits for the workers, which the loop goes on to serve.
HttpResponse Timeline(const health::HttpRequest& request, const HttpSubjects& subjects) {
  TimelineAsk ask;
  if (const std::string text = request.Parameter("seconds"); !text.empty()) {
    const auto seconds = SecondsIn(text);
    if (!seconds) {
      return {400, "text/plain",
              "seconds is '" + text + "', 1 to " + std::to_string(TimelineAsk::kMostSeconds) +
                  " are allowed\n"};
    }
    ask.seconds = *seconds;
  }
  if (const std::string text = request.Parameter("tensors"); !text.empty()) {
    if (text != "0" && text != "1")
      return {400, "text/plain", "tensors is '" + text + "', 0 and 1 are allowed\n"};
    ask.tensors = text == "1";
  }
  const auto document = subjects.timeline(ask);
  if (!document) return {503, "text/plain", "too many ask for the timeline: try again\n"};
  HttpResponse response{200, "application/json", ""};
  response.next = [document, told = false]() mutable -> std::optional<std::string> {
    if (told) return std::nullopt;
    auto text = document();
    told = text.has_value();
    return told ? std::move(*text) : "";
  };
  return response;
}

}  // namespace

HttpResponse Answer(const health::HttpRequest& request, const HttpSubjects& subjects,
                    const std::string& ring_key) {
  if (request.path == "/healthz") {
    if (subjects.healthy()) return {200, "text/plain", "ok\n"};
    return {503, "text/plain", "failed\n"};
  }
  if (request.path == "/readyz") {
    if (subjects.ready()) return {200, "text/plain", "ok\n"};
    return {503, "text/plain", "not all workers are in a training view\n"};
  }
  if (request.path == "/metrics") {
    return {200, "text/plain; version=0.0.4; charset=utf-8", subjects.metrics()};
  }
  if (!ring_key.empty() && !ring_key::IsToken(ring_key, request.Header(kTokenHeader))) {
    return {401, "text/plain",
            std::string("the header ") + ring_key::kTokenHeader + " has to have the job's token\n"};
  }
  if (request.path == "/status") return {200, "application/json", subjects.status()};
  if (request.path == "/history") return {200, "application/json", subjects.history()};
  if (request.path == "/timeline") return Timeline(request, subjects);
  return {404, "text/plain", "/healthz /readyz /metrics /status /history /timeline\n"};
}

}  // namespace ringmaster::app
