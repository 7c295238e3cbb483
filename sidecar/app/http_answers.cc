#include "sidecar/app/http_answers.h"

#include <charconv>
#include <utility>

#include "common/ring_key/ring_key.h"
#include "sidecar/health/rebuild_log.h"

namespace ringmaster::app {
namespace {

using health::HttpResponse;

// As common/http has names of headers.
constexpr char kTokenHeader[] = "ringmaster-token";

// Empty: the parameter is a number that is allowed, and is in `value`, or there is none.
std::string ReadNumber(const health::HttpRequest& request, const char* name, int least, int most,
                       int* value) {
  const std::string text = request.Parameter(name);
  if (text.empty()) return "";
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end || number < least || number > most) {
    return std::string(name) + " is '" + text + "', " + std::to_string(least) + " to " +
           std::to_string(most) + " are allowed\n";
  }
  *value = number;
  return "";
}

// Who asks a few times a second needs only what is new.
HttpResponse Status(const health::HttpRequest& request, const HttpSubjects& subjects) {
  int rebuilds = health::RebuildLog::kKeep;
  if (const std::string wrong = ReadNumber(request, "rebuilds", 0, rebuilds, &rebuilds);
      !wrong.empty()) {
    return {400, "text/plain", wrong};
  }
  return {200, "application/json", subjects.status(static_cast<std::size_t>(rebuilds))};
}

// The answer waits for the workers, which the loop goes on to serve.
HttpResponse Timeline(const health::HttpRequest& request, const HttpSubjects& subjects) {
  constexpr int kLeastBytes = 1024;
  // Nobody would wait for what the workers are asked for.
  if (request.head) return {405, "text/plain", "only GET is served\n"};
  TimelineAsk ask;
  int tensors = 1;
  for (const std::string& wrong :
       {ReadNumber(request, "seconds", 1, TimelineAsk::kMostSeconds, &ask.seconds),
        ReadNumber(request, "tensors", 0, 1, &tensors),
        ReadNumber(request, "bytes", kLeastBytes, TimelineAsk::kMostBytes, &ask.bytes)}) {
    if (!wrong.empty()) return {400, "text/plain", wrong};
  }
  ask.tensors = tensors == 1;
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
  if (request.path == "/status") return Status(request, subjects);
  if (request.path == "/history") return {200, "application/json", subjects.history()};
  if (request.path == "/timeline") return Timeline(request, subjects);
  return {404, "text/plain", "/healthz /readyz /metrics /status /history /timeline\n"};
}

}  // namespace ringmaster::app
