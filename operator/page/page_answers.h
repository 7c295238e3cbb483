// Answers the page's requests. A gate decides who may have the answers.
//
//   GET /                                   the page, and its files
//   GET /api/jobs                           Observatory::Jobs()
//   GET /api/job?job=NAMESPACE/NAME         Observatory::Job()
//   GET /api/stream?job=NAMESPACE/NAME      an event with Observatory::Newer() for each observation
//   GET /api/timeline?job=NAMESPACE/NAME&seconds=S  LanesOf(); gathered on a thread of its own
//   GET /api/log?namespace=N&pod=P&lines=L  text; read on a thread of its own. With &worker=W only
//                                           lines with this number in front. Of what is longer
//                                           than a MiB the end, and a line that says so
//
// Thread rule: called from the loop of http::Server. Only the gate may block.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/http/server.h"
#include "operator/page/observatory.h"

namespace ringmaster::page {

struct Admission {
  std::optional<http::Response> instead;  // the answer of a refused request
  // For the answer of an allowed request.
  std::vector<std::pair<std::string, std::string>> headers = {};
  // Whether a stream in progress is still allowed; none: it always is.
  std::function<bool()> holds = nullptr;
  // Returns a refusal if the client may not read the logs of a namespace's pods; none: it may.
  std::function<std::optional<http::Response>(const std::string& ns)> keeps_from_logs = nullptr;
};
using Gate = std::function<Admission(const http::Request&)>;

http::Response PageAnswer(Observatory* observatory, const http::Request& request, const Gate& gate);

// One of the page's files; nullopt if no file has that path.
std::optional<http::Response> FileAnswer(const std::string& path);
http::Response Refusal(int status, const std::string& text);

}  // namespace ringmaster::page
