// What a worker says to its sidecar, one function for each frame (docs/contracts.md, section 2). A
// worker without a sidecar says nothing.
//
// Thread rule: any thread, after Use().
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "collectives/elastic/worker_registration.h"
#include "collectives/engine/rebuild_timer.h"
#include "collectives/sidecar_client/sidecar_client.h"

namespace ringmaster::elastic {

class SidecarFrames {
 public:
  // Sets the client that sends the frames. Before the first frame.
  void Use(sidecar_client::SidecarClient* client) { client_ = client; }

  void Enter(bool stateless);
  // `holds`: the newest view in which this worker has the job's state, 0: in none.
  void Stopped(uint64_t epoch, uint64_t holds);
  void Installed(uint64_t epoch, double connect_seconds);
  void Boundary(uint64_t epoch, uint64_t step);
  void Trouble(const WorkerRegistration::Trouble& trouble);
  void Rebuilt(const engine::RebuildTimes& times, uint64_t step, uint64_t resumed);
  void Resting(uint64_t epoch);
  void Woken();
  void Finished(uint64_t epoch);
  // One of the texts that together answer the sidecar's request for the timeline.
  void TimelinePiece(uint64_t request, const std::string& text, bool last);
  void Bye();
  // Says goodbye and ends the connection for good.
  void HangUp();
  // The next ping is sent together with the next frames, and not at its time.
  void PingSoon();

 private:
  void Send(const nlohmann::json& frame);

  sidecar_client::SidecarClient* client_ = nullptr;
};

}  // namespace ringmaster::elastic
