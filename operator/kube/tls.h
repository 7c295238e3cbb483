// TLS of the client: reads certificates from PEM, makes a client that verifies the server's chain,
// time and name, and explains what was wrong with a certificate.
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

// Checks that OpenSSL can read the certificates and keys of the configuration. The error names the
// part.
Result<void> CheckTlsConfig(const ClientConfig& config);

// Makes a client for config.host that trusts `ca_pem` (empty: the system's authorities) and
// presents the certificate of `credential` with its chain. kForbidden: certificate or key can't be
// read or don't belong together.
Result<std::unique_ptr<httplib::SSLClient>> MakeTlsClient(const ClientConfig& config,
                                                          const std::string& ca_pem,
                                                          const Credential& credential);

bool HasCertificate(const std::string& pem);

// Explains why the certificate of `server` ("https://host:port") was refused; `result` is the
// result of OpenSSL's verification.
std::string ExplainRefusedCertificate(long result, const ClientConfig& config,
                                      const std::string& server);

// "https://host:port"
std::string ServerText(const ClientConfig& config);

}  // namespace ringmaster::kube
