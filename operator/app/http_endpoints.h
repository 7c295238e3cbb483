// What the operator answers to GET: /healthz, /readyz, /metrics.
//
// Thread rule: Listen and Stop from one thread. Answers are asked for on threads of the server,
// several at once.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "operator/kube/kube_api.h"

namespace ringmaster::app {

struct HttpAnswer {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

class HttpEndpoints {
 public:
  using Answers = std::map<std::string, std::function<HttpAnswer()>>;  // by path

  // `flag` for the error, which names it, the address and what is wrong with that.
  static kube::Result<std::unique_ptr<HttpEndpoints>> Listen(const std::string& flag,
                                                             const std::string& host_port,
                                                             Answers answers);
  virtual ~HttpEndpoints() = default;
  virtual int port() const = 0;
  virtual void Stop() = 0;
};

}  // namespace ringmaster::app
