// The operator's answers to GET: /healthz, /readyz, /metrics, and the page.
//
// Thread rule: Listen and Stop from one thread. One thread of the server calls for the answers, one
// after another, so they must not block: they would delay all other answers of this address.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "common/http/server.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::app {

using HttpAnswer = http::Response;

class HttpEndpoints {
 public:
  using Answers = std::map<std::string, std::function<HttpAnswer()>>;  // by path

  struct Protection {
    std::optional<http::Certificate> certificate;  // none: no TLS
    // Returns an answer that is sent instead, or nullopt if the request is allowed.
    std::function<std::optional<HttpAnswer>(const http::Request&)> refuse;
  };

  // A self-signed certificate, as is usual within a cluster: clients can't verify it, but it hides
  // tokens from eavesdroppers. The texts are empty if it can't be made.
  static http::Certificate OwnCertificate(const std::string& name);

  // The error names `flag`, the address and the problem.
  static kube::Result<std::unique_ptr<HttpEndpoints>> Listen(const std::string& flag,
                                                             const std::string& host_port,
                                                             Answers answers,
                                                             Protection protection = {});
  // `answer` answers all paths.
  static kube::Result<std::unique_ptr<HttpEndpoints>> Listen(
      const std::string& flag, const std::string& host_port, http::Server::Answer answer,
      std::optional<http::Certificate> certificate);
  virtual ~HttpEndpoints() = default;
  virtual int port() const = 0;
  virtual void Stop() = 0;
};

}  // namespace ringmaster::app
