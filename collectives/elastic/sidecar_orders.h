// Carries out what the sidecar tells a worker: its role, its views, when to stop, that it has left
// the job.
//
// Thread rule: Attach() first; all else on the sidecar client's thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "collectives/elastic/entry.h"
#include "collectives/elastic/ping_facts.h"
#include "collectives/elastic/rest_status.h"
#include "collectives/elastic/sidecar_frames.h"
#include "collectives/elastic/worker_registration.h"
#include "collectives/engine/engine.h"
#include "collectives/sidecar_client/sidecar_client.h"
#include "collectives/timeline/timeline.h"

namespace ringmaster::elastic {

class SidecarOrders : public sidecar_client::SidecarHandler {
 public:
  SidecarOrders(WorkerRegistration* registration, RestStatus* rest, SidecarFrames* frames,
                PingFacts* facts, Entry* entry)
      : registration_(registration), rest_(rest), frames_(frames), facts_(facts), entry_(entry) {}
  // `timeline`: null: there is none.
  void Attach(engine::Engine* engine, Endpoint* endpoint, const timeline::Timeline* timeline) {
    engine_ = engine;
    endpoint_ = endpoint;
    timeline_ = timeline;
  }

  nlohmann::json Hello() override;
  nlohmann::json PingFields() override;
  void OnFrame(const nlohmann::json& frame) override;
  void OnFenced(const std::string& why) override;
  void OnHeardAgain() override;

 private:
  void OnWelcome(const nlohmann::json& frame);
  // False: the frame has no valid key, and the worker has failed.
  bool TakeRingKey(const nlohmann::json& frame);
  void SayAgain(const WorkerRegistration::Repeat& repeat, const RestStatus::Repeat& rest);
  void OnPromoted(const nlohmann::json& frame);
  void OnView(const nlohmann::json& frame);
  void OnTimeline(const nlohmann::json& frame);
  void OnLeft(const nlohmann::json& frame);
  void OnError(const nlohmann::json& frame);

  WorkerRegistration* const registration_;
  RestStatus* const rest_;
  SidecarFrames* const frames_;
  PingFacts* const facts_;
  Entry* const entry_;
  engine::Engine* engine_ = nullptr;
  Endpoint* endpoint_ = nullptr;
  const timeline::Timeline* timeline_ = nullptr;
};

}  // namespace ringmaster::elastic
