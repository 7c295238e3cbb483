#include "operator/app/operator_app.h"

#include "operator/app/operator_link.h"
#include "operator/controllers/job_controller.h"

namespace ringmaster::app {
namespace {

class App final : public OperatorApp {
 public:
  App(std::shared_ptr<kube::KubeApi> api, const OperatorOptions& options)
      : api_(std::move(api)), options_(options), records_(api_) {}
  ~App() override { Stop(); }

  kube::Result<void> Run() {
    // The service first: what sidecars dial stands in the pods that the controller makes.
    auto link = OperatorLinkServer::Start(options_.listen, &hub_, &records_);
    if (!link) return tl::unexpected(link.error());
    link_ = std::move(*link);
    controllers::JobControllerOptions controller;
    controller.pod.sidecar_image = options_.sidecar_image;
    controller.pod.sidecar_target =
        options_.sidecar_target.empty() ? link_->target() : options_.sidecar_target;
    controller.watch_namespace = options_.watch_namespace;
    controller.workers = options_.workers;
    controller.trust_node_deletion = options_.trust_node_deletion;
    if (!options_.disruption_taints.empty()) {
      controller.disruption_taints = options_.disruption_taints;
    }
    controller_ = std::make_unique<controllers::JobController>(api_, &hub_, &records_, controller);
    return controller_->Start();
  }

  void Stop() override {
    if (controller_ != nullptr) controller_->Stop();
    if (link_ != nullptr) link_->Stop();
  }

 private:
  const std::shared_ptr<kube::KubeApi> api_;
  const OperatorOptions options_;
  controllers::SidecarHub hub_;
  controllers::RecordStore records_;
  std::unique_ptr<OperatorLinkServer> link_;
  std::unique_ptr<controllers::JobController> controller_;
};

}  // namespace

kube::Result<std::unique_ptr<OperatorApp>> OperatorApp::Start(std::shared_ptr<kube::KubeApi> api,
                                                              const OperatorOptions& options) {
  auto app = std::make_unique<App>(std::move(api), options);
  if (auto running = app->Run(); !running) return tl::unexpected(running.error());
  return app;
}

}  // namespace ringmaster::app
