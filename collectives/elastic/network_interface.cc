#include "collectives/elastic/network_interface.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

namespace ringmaster::elastic {
namespace {

// What NCCL_SOCKET_IFNAME says; docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
class Choice {
 public:
  explicit Choice(std::string_view text) {
    excludes_ = Takes(&text, '^');
    whole_ = Takes(&text, '=');
    while (!text.empty()) {
      const size_t comma = std::min(text.find(','), text.size());
      if (comma > 0) names_.emplace_back(text.substr(0, comma));
      text.remove_prefix(std::min(comma + 1, text.size()));
    }
  }
  bool Means(std::string_view interface, bool is_loopback) const {
    const bool named = std::any_of(names_.begin(), names_.end(), [&](const std::string& name) {
      return whole_ ? interface == name : interface.rfind(name, 0) == 0;
    });
    return excludes_ ? !named && !is_loopback : named;
  }

 private:
  static bool Takes(std::string_view* text, char mark) {
    const bool there = !text->empty() && text->front() == mark;
    if (there) text->remove_prefix(1);
    return there;
  }

  bool excludes_ = false, whole_ = false;
  std::vector<std::string> names_;
};

}  // namespace

Status AddressOfInterface(const std::string& choice, std::string* out) {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return {RM_ERR_UNAVAILABLE, "the interfaces can't be listed"};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owned(first, freeifaddrs);
  const Choice wanted(choice);
  std::string there;
  for (const ifaddrs* i = first; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET || !(i->ifa_flags & IFF_UP))
      continue;
    there += (there.empty() ? "" : ", ") + std::string(i->ifa_name);
    if (!wanted.Means(i->ifa_name, i->ifa_flags & IFF_LOOPBACK)) continue;
    char text[INET_ADDRSTRLEN] = {};
    const auto* address = reinterpret_cast<const sockaddr_in*>(i->ifa_addr);
    *out = inet_ntop(AF_INET, &address->sin_addr, text, sizeof(text));
    return {};
  }
  return {RM_ERR_INVALID, "no interface with an IPv4 address is meant; there are: " + there};
}

}  // namespace ringmaster::elastic
