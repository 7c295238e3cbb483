// X.509 as far as the project needs it: an authority, certificates that it signs, and whether a
// peer's certificate is one of those. ECDSA P-256, PEM texts.
//
// Pure functions; OpenSSL stays inside the .cc file. Thread rule: every function is safe from any
// thread.
#pragma once

#include <chrono>
#include <string>
#include <tl/expected.hpp>
#include <vector>

namespace ringmaster::tls {

using Time = std::chrono::system_clock::time_point;

struct KeyPair {
  std::string certificate_pem;
  std::string key_pem;
};

struct CertificateInfo {
  std::vector<std::string> dns_names;
  Time not_before;
  Time not_after;
};

// The names in our certificates.
inline constexpr char kOperatorName[] = "operator.ringmaster.dev";
inline constexpr char kJobDomain[] = ".job.ringmaster.dev";
std::string JobName(const std::string& job_uid);

// A certificate is valid from a little before it is made: clocks of machines differ.
inline constexpr std::chrono::hours kClockSkew{1};

// Self-signed; may sign certificates and nothing else.
tl::expected<KeyPair, std::string> MakeAuthority(Time now, std::chrono::seconds lifetime);

// For client and server, with a key of its own; `key_pem`: an older one that is kept. `names`: DNS
// names, or IPv4 addresses.
tl::expected<KeyPair, std::string> Issue(const KeyPair& authority,
                                         const std::vector<std::string>& names, Time now,
                                         std::chrono::seconds lifetime,
                                         const std::string& key_pem = "");

// The first certificate of `pem`.
tl::expected<CertificateInfo, std::string> ReadCertificate(const std::string& pem);

bool KeyFits(const KeyPair& pair);

enum class Role { kClient, kServer };

// Empty if `certificate_pem` (`chain_pem`: what the peer sent with it) leads to one of the
// authorities in `ca_pem` and is valid at `now` for `role`; otherwise why not, for people.
std::string WhyNotTrusted(const std::string& ca_pem, const std::string& certificate_pem,
                          const std::string& chain_pem, Role role, Time now);

}  // namespace ringmaster::tls
