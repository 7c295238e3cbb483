#include "collectives/elastic/sidecar_frames.h"

#include <nlohmann/json.hpp>

namespace ringmaster::elastic {

void SidecarFrames::Send(const nlohmann::json& frame) {
  if (client_ != nullptr) client_->Send(frame);
}

void SidecarFrames::PingSoon() {
  if (client_ != nullptr) client_->PingSoon();
}

void SidecarFrames::Enter(bool stateless) {
  nlohmann::json enter = {{"t", "enter"}};
  if (stateless) enter["state"] = false;
  Send(enter);
}

void SidecarFrames::Stopped(uint64_t epoch, uint64_t holds) {
  Send({{"t", "stopped"}, {"epoch", epoch}, {"holds", holds}});
}

void SidecarFrames::Installed(uint64_t epoch, double connect_seconds) {
  Send({{"t", "installed"}, {"epoch", epoch}, {"seconds", {{"connect", connect_seconds}}}});
}

void SidecarFrames::Boundary(uint64_t epoch, uint64_t step) {
  Send({{"t", "boundary"}, {"epoch", epoch}, {"step", step}});
}

void SidecarFrames::Trouble(const WorkerRegistration::Trouble& trouble) {
  Send({{"t", trouble.broken ? "broken" : "suspect"},
        {"epoch", trouble.epoch},
        {"rank", trouble.rank},
        {"reason", trouble.why}});
}

void SidecarFrames::Rebuilt(const engine::RebuildTimes& times, uint64_t step, uint64_t resumed) {
  Send({{"t", "rebuilt"},
        {"epoch", times.epoch},
        {"step", step},
        {"resumed", resumed},
        {"seconds",
         {{"stop", times.stop},
          {"connect", times.connect},
          {"redo", times.redo},
          {"resume", times.resume}}}});
}

void SidecarFrames::Resting(uint64_t epoch) { Send({{"t", "resting"}, {"epoch", epoch}}); }

void SidecarFrames::Woken() { Send({{"t", "woken"}}); }

void SidecarFrames::Finished(uint64_t epoch) { Send({{"t", "finished"}, {"epoch", epoch}}); }

void SidecarFrames::TimelinePiece(uint64_t request, const std::string& text, bool last) {
  Send({{"t", "timeline"}, {"request", request}, {"text", text}, {"last", last}});
}

void SidecarFrames::Bye() { Send({{"t", "bye"}, {"reason", "shutdown"}}); }

}  // namespace ringmaster::elastic
