#include "sidecar/launcher/world.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/fields/fields.h"

namespace ringmaster::launcher {
namespace {

using nlohmann::json;

constexpr int kEpochNumberBits = 40;  // docs/contracts.md, section 3

std::string EpochText(uint64_t epoch) {
  return std::to_string(epoch >> kEpochNumberBits) + "." +
         std::to_string(epoch & ((uint64_t{1} << kEpochNumberBits) - 1));
}

// "[::1]:80" is "::1" and "80".
std::pair<std::string, std::string> HostAndPort(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return {address, ""};
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  return {host, address.substr(colon + 1)};
}

std::string TfConfig(const World& world) {
  return json({{"cluster", {{"worker", world.addresses}}},
               {"task", {{"type", "worker"}, {"index", world.rank}}}})
      .dump();
}

}  // namespace

std::optional<World> WorldOf(const json& view, int self) {
  const json& ranks = fields::Member(view, "ranks");
  if (!ranks.is_array() || self < 0 || self >= static_cast<int>(ranks.size())) return std::nullopt;
  World world{.epoch = fields::Unsigned(view, "epoch"),
              .reason = fields::Text(view, "reason"),
              .train = fields::Flag(view, "train", true),
              .joined = fields::Flag(ranks[self], "joined"),
              .rank = self,
              .size = static_cast<int>(ranks.size())};
  world.view = EpochText(world.epoch);
  const int64_t own_pod = fields::Integer(ranks[self], "pod", -1);
  std::vector<int64_t> pods;
  world.local_size = 0;
  for (int rank = 0; rank < world.size; ++rank) {
    const int64_t pod = fields::Integer(ranks[rank], "pod", -1);
    if (std::find(pods.begin(), pods.end(), pod) == pods.end()) pods.push_back(pod);
    if (pod == own_pod) {
      if (rank < self) ++world.local_rank;
      ++world.local_size;
    }
    world.addresses.push_back(fields::Text(ranks[rank], "tcp"));
  }
  world.group_rank = static_cast<int>(std::find(pods.begin(), pods.end(), own_pod) - pods.begin());
  world.group_size = static_cast<int>(pods.size());
  return world;
}

std::vector<std::string> EnvironmentOf(const World& world, const std::string& job, int starts) {
  const auto [host, port] = HostAndPort(world.addresses.front());
  std::vector<std::string> environment = {
      "MASTER_ADDR=" + host, "MASTER_PORT=" + port, "TF_CONFIG=" + TfConfig(world),
      "RINGMASTER_VIEW=" + world.view,
      // By it scripts see that their processes are started for them.
      "TORCHELASTIC_RUN_ID=" + job,
      // It must not speak for itself: the launcher does.
      "RINGMASTER_SOCKET="};
  const auto set = [&environment](const char* name, int value) {
    environment.push_back(std::string(name) + "=" + std::to_string(value));
  };
  set("RANK", world.rank);
  set("WORLD_SIZE", world.size);
  set("LOCAL_RANK", world.local_rank);
  set("LOCAL_WORLD_SIZE", world.local_size);
  set("GROUP_RANK", world.group_rank);
  set("GROUP_WORLD_SIZE", world.group_size);
  set("ROLE_RANK", world.rank);
  set("ROLE_WORLD_SIZE", world.size);
  set("TORCHELASTIC_RESTART_COUNT", starts);
  set("HOROVOD_RANK", world.rank);
  set("HOROVOD_SIZE", world.size);
  set("HOROVOD_LOCAL_RANK", world.local_rank);
  set("HOROVOD_LOCAL_SIZE", world.local_size);
  set("HOROVOD_CROSS_RANK", world.group_rank);
  set("HOROVOD_CROSS_SIZE", world.group_size);
  return environment;
}

}  // namespace ringmaster::launcher
