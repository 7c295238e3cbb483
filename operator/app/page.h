// What the operator has to know of the page that it may serve while it leads. Who makes it stands
// above (operator/daemon): the page shows jobs with operator/inspection, which app needs not know.
//
// Thread rule: made and destroyed by one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "operator/app/operator_metrics.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::app {

class Page {
 public:
  virtual ~Page() = default;  // nobody is served any more
  virtual int port() const = 0;
};

struct PageInputs {
  std::string listen;                      // host:port
  std::function<OperatorSample()> sample;  // from any thread
  std::shared_ptr<kube::KubeApi> reviews;  // for the questions who may look
  std::shared_ptr<kube::KubeApi> reads;    // for the jobs' Secrets and the pods' logs
};

using OpenPage = std::function<kube::Result<std::unique_ptr<Page>>(PageInputs)>;

}  // namespace ringmaster::app
