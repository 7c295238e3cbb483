#include "collectives/elastic/sidecar_frames.h"

#include <nlohmann/json.hpp>

#include "common/worker_link/worker_frames.h"

namespace ringmaster::elastic {

void SidecarFrames::Send(const nlohmann::json& frame) {
  if (client_ != nullptr) client_->Send(frame);
}

void SidecarFrames::PingSoon() {
  if (client_ != nullptr) client_->PingSoon();
}

void SidecarFrames::Enter(bool stateless) {
  Send(worker_link::EnterFrame(/*takes_state=*/!stateless));
}

void SidecarFrames::Stopped(uint64_t epoch, uint64_t holds) {
  Send(worker_link::StoppedFrame(epoch, holds));
}

void SidecarFrames::Installed(uint64_t epoch, double connect_seconds) {
  Send(worker_link::InstalledFrame(epoch, connect_seconds));
}

void SidecarFrames::Boundary(uint64_t epoch, uint64_t step) {
  Send(worker_link::BoundaryFrame(epoch, step));
}

void SidecarFrames::Trouble(const WorkerRegistration::Trouble& trouble) {
  Send(worker_link::ToFrame(worker_link::ViewTrouble{.epoch = trouble.epoch,
                                                     .rank = trouble.rank,
                                                     .reason = trouble.why,
                                                     .broken = trouble.broken}));
}

void SidecarFrames::Rebuilt(const engine::RebuildTimes& times, uint64_t step, uint64_t resumed) {
  Send(worker_link::RebuiltFrame(times.epoch,
                                 {{job::kStop, times.stop},
                                  {job::kConnect, times.connect},
                                  {job::kRedo, times.redo},
                                  {job::kResume, times.resume}},
                                 step, resumed));
}

void SidecarFrames::Resting(uint64_t epoch) { Send(worker_link::RestingFrame(epoch)); }

void SidecarFrames::Woken() { Send(worker_link::WokenFrame()); }

void SidecarFrames::Finished(uint64_t epoch) { Send(worker_link::FinishedFrame(epoch)); }

void SidecarFrames::TimelinePiece(uint64_t request, const std::string& text, bool last) {
  Send(worker_link::TimelinePieceFrame(request, text, last));
}

void SidecarFrames::Bye() { Send(worker_link::ByeFrame("shutdown")); }

void SidecarFrames::HangUp() {
  Bye();
  if (client_ != nullptr) client_->HangUp();
}

}  // namespace ringmaster::elastic
