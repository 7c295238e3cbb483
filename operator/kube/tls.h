// TLS of the client: certificates read from PEM, a client that verifies chain, time and name of the
// server, and words for what was wrong with a certificate.
//
// Thread rule: free functions, safe from any thread.
#pragma once

#include <memory>
#include <string>

#include "operator/kube/credentials.h"

namespace httplib {
class SSLClient;
}

namespace ringmaster::kube {

// Whether OpenSSL can read what the configuration gives. The error names the part.
Result<void> CheckTlsConfig(const ClientConfig& config);

// A client for config.host that trusts `ca_pem` (empty: the system's authorities) and shows
// `credential`'s certificate with the chain that follows it. kForbidden: the certificate or key
// can't be read or don't belong together.
Result<std::unique_ptr<httplib::SSLClient>> MakeTlsClient(const ClientConfig& config,
                                                          const std::string& ca_pem,
                                                          const Credential& credential);

bool HasCertificate(const std::string& pem);

// Why a certificate of `server` ("https://host:port") was refused; `result` is what OpenSSL's
// verification returned.
std::string ExplainRefusedCertificate(long result, const ClientConfig& config,
                                      const std::string& server);

// "https://host:port"
std::string ServerText(const ClientConfig& config);

}  // namespace ringmaster::kube
