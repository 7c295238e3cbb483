#include "sidecar/app/http_answers.h"

#include "common/ring_key/ring_key.h"

namespace ringmaster::app {
namespace {

using health::HttpResponse;

// As common/http has names of headers.
constexpr char kTokenHeader[] = "ringmaster-token";

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
  return {404, "text/plain", "/healthz /readyz /metrics /status /history\n"};
}

}  // namespace ringmaster::app
