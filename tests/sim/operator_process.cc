#include "tests/sim/operator_process.h"

#include <utility>

#include "operator/app/waiting_notices.h"

namespace ringmaster::app::sim {
namespace {

class StreamSink final : public controllers::NoticeSink {
 public:
  explicit StreamSink(std::function<void(const v1::OperatorNotice&)> send)
      : send_(std::move(send)) {}
  void Send(const planner::Notice& notice) override {
    waiting_.Add(notice);
    while (const auto message = waiting_.Next()) send_(*message);
  }

 private:
  WaitingNotices waiting_;
  const std::function<void(const v1::OperatorNotice&)> send_;
};

controllers::JobControllerOptions ControllerOptions(const OperatorProcessOptions& options) {
  controllers::JobControllerOptions made;
  made.pod.sidecar_target = "operator";
  made.proof_finalizer = options.proof_finalizer;
  made.calls_at_once = 1;
  made.most_events_waiting = 0;
  made.clock = options.clock;
  return made;
}

}  // namespace

OperatorProcess::OperatorProcess(std::shared_ptr<kube::KubeApi> api,
                                 const OperatorProcessOptions& options, Send send)
    : send_(std::move(send)),
      registry_(nullptr, options.clock, options.forgets),
      records_(api, nullptr, options.forgets),
      controller_(api, &registry_, &records_, ControllerOptions(options)) {
  controller_.Listen();
}

OperatorProcess::~OperatorProcess() = default;

std::string OperatorProcess::Take(std::uint64_t stream, const v1::SidecarReport& report) {
  auto& intake = streams_[stream];
  if (intake == nullptr) {
    const auto send = [this, stream](const v1::OperatorNotice& notice) { send_(stream, notice); };
    intake = std::make_unique<ReportIntake>(
        &registry_, ReportIntake::Peer{.why_not_its_job = [](const auto&) { return ""; },
                                       .on_accepted = send,
                                       .sink = std::make_shared<StreamSink>(send)});
  }
  const ReportIntake::Result taken = intake->Take(report);
  if (taken.outcome == ReportIntake::Outcome::kTaken) return "";
  StreamEnded(stream);
  return taken.why;
}

void OperatorProcess::StreamEnded(std::uint64_t stream) {
  const auto at = streams_.find(stream);
  if (at == streams_.end()) return;
  at->second->End();
  streams_.erase(at);
}

}  // namespace ringmaster::app::sim
