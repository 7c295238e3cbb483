// What the operator answers to GET: /healthz, /readyz, /metrics, and the page.
//
// Thread rule: Listen and Stop from one thread. Answers are asked for on a thread of the server,
// one after another: they must not wait, or nobody else of this address gets an answer meanwhile.
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
    // What is answered in the place of an answer; nullopt: nothing stands against it.
    std::function<std::optional<HttpAnswer>(const http::Request&)> refuse;
  };

  // One that nobody can check, as is usual within a cluster: it keeps tokens from those who only
  // listen. Empty texts: the machine can't make one.
  static http::Certificate OwnCertificate(const std::string& name);

  // `flag` for the error, which names it, the address and what is wrong with that.
  static kube::Result<std::unique_ptr<HttpEndpoints>> Listen(const std::string& flag,
                                                             const std::string& host_port,
                                                             Answers answers,
                                                             Protection protection = {});
  // All paths are answered by `answer`.
  static kube::Result<std::unique_ptr<HttpEndpoints>> Listen(
      const std::string& flag, const std::string& host_port, http::Server::Answer answer,
      std::optional<http::Certificate> certificate);
  virtual ~HttpEndpoints() = default;
  virtual int port() const = 0;
  virtual void Stop() = 0;
};

}  // namespace ringmaster::app
