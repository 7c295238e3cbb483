// What a sidecar and its operator client tell each other, as plain values and functions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/membership/sizes.h"

namespace ringmaster::rendezvous {

struct ReadinessInfo {
  bool ready = false;
  std::vector<uint32_t> missing_slots;
  std::string member;  // JSON
};

struct OperatorCallbacks {
  std::function<void(bool connected)> on_connection;
  std::function<void()> on_accepted;
  std::function<void(const std::string& view_json)> on_found;
  std::function<void(const std::vector<std::string>& pods, const std::string& reason,
                     int64_t deadline_unix_ms, std::optional<int64_t> left_ms,
                     std::optional<bool> all_leave)>
      on_drain;
  std::function<void(const std::string& pod_uid, const std::string& reason)> on_pod_gone;
  std::function<void(const membership::Sizes& sizes, uint32_t expected_pods)> on_target;
  std::function<void(const std::string& reason)> on_finish;
  std::function<void(uint64_t lineage, bool fresh_workers)> on_recover;
};

}  // namespace ringmaster::rendezvous
