// A listener that records what it is told, for tests of the engine's parts.
//
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/engine/engine_listener.h"

namespace ringmaster::engine {

class FakeListener : public EngineListener {
 public:
  void OnStopped(uint64_t epoch) override { Hear("stopped", epoch); }
  void OnInstalled(uint64_t epoch, double) override { Hear("installed", epoch); }
  void OnBoundary(uint64_t epoch, uint64_t step) override { Hear("boundary", epoch, step); }
  void OnSuspect(uint64_t epoch, int rank, const std::string& why) override {
    Hear("suspect", epoch, rank, why);
  }
  void OnBroken(uint64_t epoch, int rank, const std::string& why) override {
    Hear("broken", epoch, rank, why);
  }
  void OnRebuilt(const RebuildTimes& times, uint64_t, uint64_t) override {
    Hear("rebuilt", times.epoch);
  }
  void OnAbandoned(uint64_t epoch) override { Hear("abandoned", epoch); }
  void OnShutDown(uint64_t epoch) override { Hear("finished", epoch); }
  void OnStalls(const std::vector<job::Stall>&, bool) override { heard.push_back("stalls"); }

  std::vector<std::string> heard;  // "boundary 5 2": the event, its epoch, its other arguments

 private:
  void Hear(const std::string& event, uint64_t epoch) {
    heard.push_back(event + " " + std::to_string(epoch));
  }
  void Hear(const std::string& event, uint64_t epoch, uint64_t step) {
    Hear(event + " " + std::to_string(epoch), step);
  }
  void Hear(const std::string& event, uint64_t epoch, int rank, const std::string& why) {
    heard.push_back(event + " " + std::to_string(epoch) + " " + std::to_string(rank) + " " + why);
  }
};

}  // namespace ringmaster::engine
