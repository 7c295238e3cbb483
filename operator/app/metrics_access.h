// Who may read the operator's metrics where they are closed: the API server is asked whose token it
// is that came (TokenReview) and whether that one may `get` the path (SubjectAccessReview), as
// kube-rbac-proxy does. What it said holds for a minute.
//
// Thread rule: one thread. It blocks for up to two calls of the API.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/http/server.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::app {

class MetricsAccess {
 public:
  using Clock = std::chrono::steady_clock;

  // `api`: of its own, and slow: whoever reaches the port decides how often it is asked.
  explicit MetricsAccess(std::shared_ptr<kube::KubeApi> api,
                         std::function<Clock::time_point()> now = Clock::now)
      : api_(std::move(api)), now_(std::move(now)) {}

  struct Decision {
    int status = 200;  // 401: nobody we know, 403: not allowed, 503: the API server can't tell
    std::string why;
  };
  Decision Check(const http::Request& request);

 private:
  struct Known {
    Decision decision;
    Clock::time_point until;
  };
  Decision Ask(const std::string& token, const std::string& path);

  const std::shared_ptr<kube::KubeApi> api_;
  const std::function<Clock::time_point()> now_;
  std::map<std::string, Known> known_;  // by path and token; those who may alone
};

}  // namespace ringmaster::app
