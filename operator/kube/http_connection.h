// HTTP to one API server: a pool of kept connections, deadlines that hold whatever the server does,
// limits on what it may send. With tls.cc the only place of the client that knows httplib.
//
// Thread rule: safe from any thread.
#pragma once

#include <chrono>
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

namespace ringmaster::kube {

struct HttpRequest {
  std::string method;
  std::string path;  // with the query
  std::string body;
  std::string content_type;
  std::string accept = "application/json";
  std::map<std::string, std::string> headers;  // beside those of the client
  std::chrono::milliseconds deadline{30'000};
  // Stream: the longest silence after the answer began; 0: only the deadline counts.
  std::chrono::milliseconds quiet{0};
};

struct HttpResponse {
  int status = 0;
  std::string body;                      // not what `on_data` has taken
  std::chrono::seconds retry_after{-1};  // -1: no such header
  std::vector<std::string> warnings;
  bool queued_fairly = false;  // by the server's API priority and fairness
};

class HttpConnections {
 public:
  // kInvalid: a certificate or key that OpenSSL can't read.
  static Result<std::unique_ptr<HttpConnections>> Make(const ClientConfig& config);
  ~HttpConnections();

  // The error is a sentence for people; the caller adds what was asked.
  Result<HttpResponse> Send(const HttpRequest& request, const Credential& credential);

  // As Send on a connection of its own; `on_status` is called when the answer begins; a 200's body
  // goes to `on_data` as it comes, until it returns false or `stop`.
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
  void Return(std::unique_ptr<Connection> connection);

  const ClientConfig config_;
  ConnectionAborter aborter_;
  sync::Mutex mu_;
  std::string ca_pem_ GUARDED_BY(mu_);  // the newest that could be read
  std::vector<std::unique_ptr<Connection>> idle_ GUARDED_BY(mu_);
};

}  // namespace ringmaster::kube
