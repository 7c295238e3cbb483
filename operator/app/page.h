// The interface of the page that the operator may serve while it leads. operator/daemon implements
// it, one layer above, because the page reads jobs with operator/inspection, which this folder does
// not depend on.
//
// Thread rule: created and destroyed by one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "operator/app/operator_metrics.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::app {

class Page {
 public:
  virtual ~Page() = default;  // stops serving
  virtual int port() const = 0;
};

struct PageInputs {
  std::string listen;                      // host:port
  std::function<OperatorSample()> sample;  // callable from any thread
  std::shared_ptr<kube::KubeApi> reviews;  // for access reviews
  std::shared_ptr<kube::KubeApi> reads;    // for the jobs' Secrets and the pods' logs
};

using OpenPage = std::function<kube::Result<std::unique_ptr<Page>>(PageInputs)>;

}  // namespace ringmaster::app
