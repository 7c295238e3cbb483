// HTTP to one API server: a pool of kept connections, deadlines that hold whatever the server does,
// and limits on the size of answers. Only this file and tls.cc know httplib.
//
// Thread rule: safe from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "common/sync/mutex.h"
#include "operator/kube/connection_aborter.h"
#include "operator/kube/credentials.h"

namespace httplib {
enum class Error;
}

namespace ringmaster::kube {

struct HttpRequest {
  std::string method;
  std::string path;  // with the query
  std::string body;
  std::string content_type;
  std::string accept = "application/json";
  std::map<std::string, std::string> headers;  // in addition to the client's own headers
  std::chrono::milliseconds deadline{30'000};
  // For Stream: the longest silence after the answer has begun; 0: only the deadline counts.
  std::chrono::milliseconds quiet{0};
};

struct HttpResponse {
  int status = 0;
  std::string body;                      // without what `on_data` has received
  std::chrono::seconds retry_after{-1};  // -1: no such header
  std::vector<std::string> warnings;
  bool queued_fairly = false;  // the server's API priority and fairness has handled the request
};

class HttpConnections {
 public:
  // kInvalid: OpenSSL can't read a certificate or key.
  static Result<std::unique_ptr<HttpConnections>> Make(const ClientConfig& config);
  ~HttpConnections();

  // The error is a sentence for people; the caller adds a description of the call.
  Result<HttpResponse> Send(const HttpRequest& request, const Credential& credential);

  // Like Send, on a connection of its own. Calls `on_status` when the answer begins. Passes the
  // body of a 200 answer to `on_data` as it arrives, until `on_data` returns false or `stop` is
  // requested.
  Result<HttpResponse> Stream(const HttpRequest& request, const Credential& credential,
                              const std::function<void(int status)>& on_status,
                              const std::function<bool(std::string_view)>& on_data,
                              std::stop_token stop);

 private:
  struct Connection;
  explicit HttpConnections(const ClientConfig& config);
  Result<std::unique_ptr<Connection>> Take(const Credential& credential, bool fresh);
  Result<std::unique_ptr<Connection>> Open(const Credential& credential);
  std::string Authorities();
  void NoteUnreachable(httplib::Error error);
  void Return(std::unique_ptr<Connection> connection);

  const ClientConfig config_;
  ConnectionAborter aborter_;
  // Which of the host's addresses is used: another one, if no connection could be made.
  std::atomic<std::size_t> address_{0};
  sync::Mutex mu_;
  std::string ca_pem_ GUARDED_BY(mu_);  // the newest readable text of the file
  std::vector<std::unique_ptr<Connection>> idle_ GUARDED_BY(mu_);
};

}  // namespace ringmaster::kube
