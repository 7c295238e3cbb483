// X.509 as far as the project needs it: makes an authority and certificates that it signs, and
// checks whether it signed a peer's certificate. The keys are ECDSA P-256; all texts are PEM.
//
// Pure functions; OpenSSL stays inside the .cc file. Thread rule: every function is safe from any
// thread.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <tl/expected.hpp>
#include <utility>
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

// A self-signed authority that may sign certificates and nothing else.
tl::expected<KeyPair, std::string> MakeAuthority(Time now, std::chrono::seconds lifetime);

// An authority that is read once, for whoever issues many certificates: OpenSSL takes as long to
// read a key as to sign with it.
class Issuer {
 public:
  static tl::expected<Issuer, std::string> Of(const KeyPair& authority);
  // As the function below.
  tl::expected<KeyPair, std::string> Issue(const std::vector<std::string>& names, Time now,
                                           std::chrono::seconds lifetime,
                                           const std::string& key_pem = "") const;

 private:
  struct Parts;
  explicit Issuer(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}

  std::shared_ptr<const Parts> parts_;
};

// A certificate for client and server. Empty `key_pem`: a new key is made; else that key is kept.
// `names`: DNS names or IPv4 addresses.
tl::expected<KeyPair, std::string> Issue(const KeyPair& authority,
                                         const std::vector<std::string>& names, Time now,
                                         std::chrono::seconds lifetime,
                                         const std::string& key_pem = "");

// The first certificate of `pem`.
tl::expected<CertificateInfo, std::string> ReadCertificate(const std::string& pem);

bool KeyFits(const KeyPair& pair);

enum class Role { kClient, kServer };

// Empty if an authority in `ca_pem` signed `certificate_pem`, perhaps by way of the certificates in
// `chain_pem` that the peer sent with it, and it is valid at `now` for `role`. Otherwise a text for
// people that says why not.
std::string WhyNotTrusted(const std::string& ca_pem, const std::string& certificate_pem,
                          const std::string& chain_pem, Role role, Time now);

}  // namespace ringmaster::tls
