// A certificate authority that lives for one run, and the server certificate it signed for the
// server's address, 127.0.0.1 and localhost. The authority's key is thrown away at once: nothing
// else can ever be signed by it.
#pragma once

#include <string>
#include <tl/expected.hpp>

namespace ringmaster::local {

struct TlsMaterial {
  std::string ca_pem;
  std::string cert_pem;
  std::string key_pem;
};

tl::expected<TlsMaterial, std::string> MakeTlsMaterial(const std::string& address = "127.0.0.1");

}  // namespace ringmaster::local
