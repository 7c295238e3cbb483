// What the page asks for, and gets. Who may have it is for a gate to say.
//
//   GET /                                   the page, and its files
//   GET /api/jobs                           Observatory::Jobs()
//   GET /api/job?job=NAMESPACE/NAME         Observatory::Job()
//   GET /api/stream?job=NAMESPACE/NAME      an event with Observatory::Newer() for each look
//   GET /api/timeline?job=NAMESPACE/NAME&seconds=S  LanesOf(); asked for on a thread of its own
//   GET /api/log?namespace=N&pod=P&lines=L  text; it is read on a thread of its own
//
// Thread rule: of http::Server, whose loop asks. Nothing here waits but the gate, if it does.
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
  std::optional<http::Response> instead;                          // what is answered to who may not
  std::vector<std::pair<std::string, std::string>> headers = {};  // of what is answered to who may
  // Whether it still holds, while a stream goes on; none: it does.
  std::function<bool()> holds = nullptr;
  // What keeps them from the logs of a namespace's pods, none: nothing does.
  std::function<std::optional<http::Response>(const std::string& ns)> keeps_from_logs = nullptr;
};
using Gate = std::function<Admission(const http::Request&)>;

http::Response PageAnswer(Observatory* observatory, const http::Request& request, const Gate& gate);

// One of the page's files; nullopt: there is none of that path.
std::optional<http::Response> FileAnswer(const std::string& path);
http::Response Refusal(int status, const std::string& text);

}  // namespace ringmaster::page
