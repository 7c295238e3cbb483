#include "operator/local/server/tls_material.h"

#include <vector>

#include "common/tls/certificate.h"

namespace ringmaster::local {

tl::expected<TlsMaterial, std::string> MakeTlsMaterial(const std::string& address) {
  constexpr auto kLifetime = std::chrono::hours(366 * 24);
  const auto now = std::chrono::system_clock::now();
  const auto authority = tls::MakeAuthority(now, kLifetime);
  if (!authority) return tl::unexpected(authority.error());
  std::vector<std::string> names = {"127.0.0.1", "localhost"};
  if (address != names.front()) names.push_back(address);
  const auto server = tls::Issue(*authority, names, now, kLifetime);
  if (!server) return tl::unexpected(server.error());
  return TlsMaterial{authority->certificate_pem, server->certificate_pem, server->key_pem};
}

}  // namespace ringmaster::local
