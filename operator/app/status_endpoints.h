// The addresses at which the process tells how it is: /healthz, /readyz and /metrics.
//
// It owns the servers, and who may read /metrics. Thread rule: one thread; the answers are asked
// for on threads of the servers.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "operator/app/access_review.h"
#include "operator/app/http_endpoints.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::app {

class StatusEndpoints {
 public:
  // host:port; empty: not served. Both may be the same.
  struct Addresses {
    std::string health, metrics;
  };
  struct Answers {
    // What is wrong, in lines for people; empty: nothing.
    std::function<std::vector<std::string>()> not_alive, not_ready;
    std::function<std::string()> metrics;
  };

  // With `reviews`, /metrics at an address of its own is over TLS and for those whom the API server
  // allows it; null: for all. False: an address can't be opened, and the log says why.
  bool Listen(const Addresses& addresses, const Answers& answers,
              std::shared_ptr<kube::KubeApi> reviews);
  void Stop();
  // Of the addresses that are served: first that of the health.
  std::vector<int> ports() const;

 private:
  bool Open(const char* flag, const std::string& address, HttpEndpoints::Answers answers,
            HttpEndpoints::Protection protection);
  HttpEndpoints::Protection ProtectMetrics();

  std::unique_ptr<AccessReview> access_review_;  // null: /metrics is open to all
  std::vector<std::unique_ptr<HttpEndpoints>> endpoints_;
};

}  // namespace ringmaster::app
