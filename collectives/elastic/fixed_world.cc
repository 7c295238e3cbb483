#include "collectives/elastic/fixed_world.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "collectives/elastic/first_view.h"
#include "collectives/elastic/network_interface.h"
#include "common/fields/fields.h"
#include "common/fields/parse.h"
#include "common/ring_key/ring_key.h"

namespace ringmaster::elastic {
namespace {

using Clock = process_manager::Clock;

std::string HostName() {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return name;
}

// The numeric address from which this machine reaches `there`. Nothing is sent: only a route is
// looked for.
std::optional<std::string> OwnAddressTowards(const addrinfo& there) {
  const int fd = socket(there.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return std::nullopt;
  sockaddr_storage self = {};
  socklen_t size = sizeof(self);
  char text[NI_MAXHOST] = {};
  const bool found = connect(fd, there.ai_addr, there.ai_addrlen) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&self), &size) == 0 &&
                     getnameinfo(reinterpret_cast<sockaddr*>(&self), size, text, sizeof(text),
                                 nullptr, 0, NI_NUMERICHOST) == 0;
  close(fd);
  // An address with a scope ("fe80::1%eth0") has a meaning on this machine alone.
  if (!found || std::strchr(text, '%') != nullptr) return std::nullopt;
  return text;
}

// The address from which this machine reaches that host: by IPv4 if there is a route, else by IPv6.
// All ranks choose in the same way.
Status AddressTowards(const std::string& host, std::string* out) {
  addrinfo wanted = {}, *found = nullptr;
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_DGRAM;
  if (const int error = getaddrinfo(host.c_str(), "9", &wanted, &found); error != 0) {
    return {RM_ERR_UNAVAILABLE,
            "the address of " + host + ", which has other ranks, is not known (" +
                gai_strerror(error) + "); RINGMASTER_BIND_WORKER can name this machine's own"};
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, freeaddrinfo);
  for (const int family : {AF_INET, AF_INET6}) {
    for (const addrinfo* there = found; there != nullptr; there = there->ai_next) {
      if (there->ai_family != family) continue;
      if (auto own = OwnAddressTowards(*there)) return *out = *own, Status();
    }
  }
  return {RM_ERR_UNAVAILABLE, "no route leads to " + host + ", which has other ranks"};
}

// The address under which the others reach this process. `hosts`: by rank.
Status BindAddress(const WorkerOptions& options, const std::vector<std::string>& hosts,
                   const std::string& own, std::string* out) {
  *out = options.bind;
  const auto other =
      std::find_if(hosts.begin(), hosts.end(), [&](const auto& host) { return host != own; });
  if (options.bind_is_given || other == hosts.end()) return {};
  return AddressTowards(*other, out);
}

struct Introduction {
  PeerEndpoint peer;
  bool by_mpi = false;  // it is to use MPI for its collectives
  std::string key;      // the ring key, which rank 0 makes; empty from other ranks
};

std::string Write(const PeerEndpoint& peer, bool by_mpi, const std::string& key) {
  nlohmann::json said = {{"tcp", peer.tcp}, {"shm", peer.shm}};
  if (by_mpi) said["mpi"] = true;
  if (!key.empty()) said["key"] = ring_key::Encode(key);
  return said.dump();
}

std::optional<Introduction> Read(const std::string& said) {
  const auto json = fields::ParseOrDiscard(said);
  Introduction who;
  who.peer.tcp = fields::Text(json, "tcp");
  who.peer.shm = fields::Text(json, "shm");
  who.by_mpi = json.is_object() && json.value("mpi", nlohmann::json()) == true;
  who.key = ring_key::Decode(fields::Text(json, "key")).value_or("");
  if (who.peer.tcp.empty()) return std::nullopt;
  return who;
}

// What rank 0 has said isn't shown, because the key is in it.
Status NotOurs(size_t rank, const std::string& said) {
  return {RM_ERR_UNAVAILABLE, "rank " + std::to_string(rank) + " says " +
                                  (rank == 0 ? "something" : "'" + said + "'") +
                                  ", which is not what Ringmaster says: all ranks have to run "
                                  "the same script"};
}

std::string Speaks(size_t rank, bool by_mpi) {
  return "rank " + std::to_string(rank) + (by_mpi ? " has it" : " does not have it");
}

// Puts together the view from what all ranks have said. Without a key from rank 0 that fails: a
// ring without a key would take in any process.
Status ReadAll(const std::vector<std::string>& said, const std::vector<std::string>& hosts,
               engine::WorkerView* view, std::string* key) {
  bool by_mpi = false;  // what rank 0 is to use
  for (size_t rank = 0; rank < said.size(); ++rank) {
    auto who = Read(said[rank]);
    if (!who) return NotOurs(rank, said[rank]);
    // Ranks of one host share its memory.
    who->peer.pod =
        static_cast<int>(std::find(hosts.begin(), hosts.end(), hosts[rank]) - hosts.begin());
    if (rank == 0) {
      *key = who->key;
      by_mpi = who->by_mpi;
    }
    if (who->by_mpi != by_mpi) {
      return {RM_ERR_INVALID, "RINGMASTER_BACKEND is to be mpi in all ranks or in none: " +
                                  Speaks(0, by_mpi) + ", " + Speaks(rank, who->by_mpi)};
    }
    view->peers.push_back(who->peer);
    view->workers.push_back("rank " + std::to_string(rank) + " on " + hosts[rank]);
  }
  if (key->empty()) {
    return {RM_ERR_UNAVAILABLE,
            "rank 0 says no key of the ring ('key', 32 bytes in base64): without one any process "
            "could take part. All ranks have to run the same version of Ringmaster"};
  }
  return {};
}

}  // namespace

Status FoundWorld(process_manager::ProcessManager* manager, const WorkerOptions& options,
                  Clock::time_point deadline, std::unique_ptr<Endpoint>* endpoint,
                  engine::WorkerView* view) {
  const std::string own = HostName();
  std::vector<std::string> hosts, said;
  if (Status s = manager->Exchange("host", own, deadline, &hosts); !s.ok()) return s;

  Endpoint::Options to_be;
  if (Status s = BindAddress(options, hosts, own, &to_be.bind); !s.ok()) return s;
  to_be.bind = FreePortOf(to_be.bind);
  to_be.job = manager->job();
  to_be.shared_memory = options.shared_memory;
  to_be.encrypt = options.encrypt;
  if (Status s = Endpoint::Create(to_be, endpoint); !s.ok()) return s;

  std::string key = manager->rank() == 0 ? ring_key::MakeRandom() : "";
  const std::string mine =
      Write((*endpoint)->Address(), options.backend == BackendChoice::kMpi, key);
  if (Status s = manager->Exchange("worker", mine, deadline, &said); !s.ok()) return s;
  *view = FirstView();
  view->only = true;
  view->self = manager->rank();
  if (Status s = ReadAll(said, hosts, view, &key); !s.ok()) return s;
  if (Status s = (*endpoint)->SetKey(key); !s.ok()) return s;
  // A rank that has no key yet can't prove to another one that it lives.
  return manager->Exchange("has key", "", deadline, &said);
}

void FixedWorldReports::OnSuspect(uint64_t, int rank, const std::string& why) {
  End("rank " + std::to_string(rank) + " is gone: " + why);
}

void FixedWorldReports::OnBroken(uint64_t, int, const std::string& why) { End(why); }

void FixedWorldReports::OnStalls(const std::vector<job::Stall>& stalls, bool came) {
  facts_->SetStalls(stalls, came, engine_->info().workers());
}

void FixedWorldReports::End(const std::string& what) {
  engine_->PostEnd(
      {RM_ERR_INTERNAL, what + "; ranks that an MPI launcher has started have no successors. Under "
                               "`ringmaster run` or a HorovodJob the others would go on"});
}

}  // namespace ringmaster::elastic
