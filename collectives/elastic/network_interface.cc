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

// A choice of interfaces, written as in NCCL_SOCKET_IFNAME;
// docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
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

bool IsOf(const sockaddr* address, AddressFamily family) {
  if (address == nullptr) return false;
  if (family == AddressFamily::kIpv4) return address->sa_family == AF_INET;
  return address->sa_family == AF_INET6 &&
         !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

std::string Text(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = {};
  const void* bytes = &reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
  if (address->sa_family == AF_INET6)
    bytes = &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  return inet_ntop(address->sa_family, bytes, text, sizeof(text));
}

}  // namespace

AddressFamily FamilyOf(const std::string& host) {
  return host.find(':') == std::string::npos ? AddressFamily::kIpv4 : AddressFamily::kIpv6;
}

std::string FreePortOf(const std::string& host) {
  const bool bare = FamilyOf(host) == AddressFamily::kIpv6 && host.front() != '[';
  return (bare ? "[" + host + "]" : host) + ":0";
}

Status AddressOfInterface(const std::string& choice, AddressFamily family, std::string* out) {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return {RM_ERR_UNAVAILABLE, "the interfaces can't be listed"};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owned(first, freeifaddrs);
  const Choice wanted(choice);
  const AddressFamily other =
      family == AddressFamily::kIpv4 ? AddressFamily::kIpv6 : AddressFamily::kIpv4;
  std::vector<std::string> there;
  for (const AddressFamily now : {family, other}) {
    for (const ifaddrs* i = first; i != nullptr; i = i->ifa_next) {
      if (!IsOf(i->ifa_addr, now) || !(i->ifa_flags & IFF_UP)) continue;
      if (std::find(there.begin(), there.end(), i->ifa_name) == there.end())
        there.emplace_back(i->ifa_name);
      if (!wanted.Means(i->ifa_name, i->ifa_flags & IFF_LOOPBACK)) continue;
      *out = Text(i->ifa_addr);
      return {};
    }
  }
  std::string names;
  for (const std::string& name : there) names += (names.empty() ? "" : ", ") + name;
  return {RM_ERR_INVALID, "no interface with an IP address is meant; there are: " + names};
}

}  // namespace ringmaster::elastic
