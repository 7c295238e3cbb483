#include "collectives/elastic/engine_reports.h"

#include <cstdio>

namespace ringmaster::elastic {

void EngineReports::OnStopped(uint64_t epoch) {
  frames_->Stopped(epoch, engine_->info().held_epoch);
}

void EngineReports::OnInstalled(uint64_t epoch, double connect_seconds) {
  registration_->Installed(epoch);
  frames_->Installed(epoch, connect_seconds);
}

void EngineReports::OnBoundary(uint64_t epoch, uint64_t step) {
  registration_->AtBoundary(epoch, step);
  frames_->Boundary(epoch, step);
}

void EngineReports::OnSuspect(uint64_t epoch, int rank, const std::string& why) {
  Tell({epoch, rank, why, /*broken=*/false});
}

void EngineReports::OnBroken(uint64_t epoch, int rank, const std::string& why) {
  if (rank >= 0) std::fprintf(stderr, "ringmaster: %s: waits for new connections\n", why.c_str());
  Tell({epoch, rank, why, /*broken=*/true});
}

void EngineReports::Tell(const WorkerRegistration::Trouble& trouble) {
  registration_->InTrouble(trouble);
  frames_->Trouble(trouble);
}

void EngineReports::OnRebuilt(const engine::RebuildTimes& times, uint64_t step, uint64_t resumed) {
  frames_->Rebuilt(times, step, resumed);
}

// A worker that has said goodbye and hangs up counts as lost at once, although its process lives.
void EngineReports::OnAbandoned(uint64_t) { frames_->HangUp(); }

void EngineReports::OnShutDown(uint64_t epoch) {
  frames_->PingSoon();  // it carries the last step and values, and there may be no later ping
  rest_->Rests(epoch);
  if (rest_->may_rest()) return frames_->Resting(epoch);
  rest_->Finished(epoch);
  frames_->Finished(epoch);
}

void EngineReports::OnStalls(const std::vector<job::Stall>& stalls, bool came) {
  facts_->SetStalls(stalls, came, engine_->info().workers());
}

}  // namespace ringmaster::elastic
