#include "sidecar/app/ports_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "common/fields/fields.h"
#include "common/fields/parse.h"

namespace ringmaster::app {
namespace {

using nlohmann::json;

constexpr int kHighestPort = 65535;

int PortField(const json& file, const char* name) {
  auto it = file.find(name);
  if (it == file.end() || !it->is_number_unsigned()) return 0;
  const uint64_t port = it->get<uint64_t>();
  return port <= kHighestPort ? static_cast<int>(port) : 0;
}

}  // namespace

std::uint64_t NewIncarnation(const Ports& before, std::int64_t unix_ms) {
  const auto time = static_cast<std::uint64_t>(std::max<std::int64_t>(unix_ms, 1));
  return std::max(time, before.incarnation + 1);
}

PortsFile::PortsFile(const std::string& directory, std::string pod_uid)
    : path_(directory + "/ports.json"), pod_uid_(std::move(pod_uid)) {}

Ports PortsFile::Load() const {
  std::ifstream in(path_, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  json file = fields::ParseOrDiscard(text);
  if (!file.is_object() || file.value("podUid", json()) != pod_uid_) return {};
  return {PortField(file, "rendezvous"), PortField(file, "heartbeat"), PortField(file, "http"),
          fields::Unsigned(file, "incarnation")};
}

tl::expected<void, std::string> PortsFile::Store(const Ports& ports) const {
  const json file = {{"podUid", pod_uid_},
                     {"rendezvous", ports.rendezvous},
                     {"heartbeat", ports.heartbeat},
                     {"http", ports.http},
                     {"incarnation", ports.incarnation}};
  const std::string temporary = path_ + ".new";
  std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
  out << file.dump() << "\n";
  out.close();
  if (out && std::rename(temporary.c_str(), path_.c_str()) == 0) return {};
  return tl::unexpected("RINGMASTER_STATE_DIR: cannot write " + path_ + ": " +
                        std::strerror(errno));
}

}  // namespace ringmaster::app
