#include "operator/kube/tls.h"

#include <arpa/inet.h>
#include <httplib.h>
#include <openssl/x509v3.h>

#include <vector>

#include "operator/kube/errors.h"
#include "operator/kube/pem.h"

namespace ringmaster::kube {
namespace {

// The name that the server's certificate must have.
const std::string& ServerName(const ClientConfig& config) {
  return config.tls_server_name.empty() ? config.host : config.tls_server_name;
}

bool IsAddress(const std::string& host) {
  unsigned char bytes[sizeof(in6_addr)];
  return inet_pton(AF_INET, host.c_str(), bytes) == 1 ||
         inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

// httplib checks the name as well, but it also accepts a common name and doesn't report what was
// wrong.
void DemandName(SSL_CTX* context, const std::string& name) {
  X509_VERIFY_PARAM* param = SSL_CTX_get0_param(context);
  if (IsAddress(name)) {
    X509_VERIFY_PARAM_set1_ip_asc(param, name.c_str());
  } else {
    X509_VERIFY_PARAM_set_hostflags(
        param, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    X509_VERIFY_PARAM_set1_host(param, name.c_str(), name.size());
  }
}

}  // namespace

std::string ServerText(const ClientConfig& config) {
  bool v6 = config.host.find(':') != std::string::npos;
  return std::string(config.tls ? "https://" : "http://") +
         (v6 ? "[" + config.host + "]" : config.host) + ":" + std::to_string(config.port);
}

bool HasCertificate(const std::string& pem) { return !ReadCertificates(pem).empty(); }

Result<void> CheckTlsConfig(const ClientConfig& config) {
  if (!config.tls) return {};
  const std::string server = ServerText(config);
  if (!config.ca_pem.empty() && !HasCertificate(config.ca_pem)) {
    return Fail(ErrorCode::kInvalid,
                "the certificate authority for " + server + " is not a PEM certificate");
  }
  if (config.client_cert_pem.empty() && config.client_key_pem.empty()) return {};
  return CheckPair(config.client_cert_pem, config.client_key_pem, server, ErrorCode::kInvalid);
}

Result<std::unique_ptr<httplib::SSLClient>> MakeTlsClient(const ClientConfig& config,
                                                          const std::string& ca_pem,
                                                          const Credential& credential) {
  const std::string& name = ServerName(config);
  std::unique_ptr<httplib::SSLClient> client;
  if (credential.client_cert_pem.empty()) {
    client = std::make_unique<httplib::SSLClient>(name, config.port);
  } else {
    auto ok = CheckPair(credential.client_cert_pem, credential.client_key_pem, ServerText(config),
                        ErrorCode::kForbidden);
    if (!ok) return tl::unexpected(ok.error());
    auto chain = ReadCertificates(credential.client_cert_pem);
    client = std::make_unique<httplib::SSLClient>(name, config.port, chain.front().get(),
                                                  ReadKey(credential.client_key_pem).get());
    for (size_t i = 1; i < chain.size(); ++i) {
      SSL_CTX_add1_chain_cert(client->ssl_context(), chain[i].get());
    }
  }
  if (!client->is_valid()) return Fail(ErrorCode::kInternal, "OpenSSL can't make a TLS client");
  client->enable_server_certificate_verification(true);
  SSL_CTX_set_min_proto_version(client->ssl_context(), TLS1_2_VERSION);
  DemandName(client->ssl_context(), name);
  if (!ca_pem.empty()) {
    Owned<X509_STORE> store(X509_STORE_new());
    for (const auto& cert : ReadCertificates(ca_pem)) X509_STORE_add_cert(store.get(), cert.get());
    client->set_ca_cert_store(store.release());
    // Where it knows no path, httplib adds this machine's authorities to the store: some hundred
    // strangers would be trusted besides, and each connection would take 20 ms to read them. In
    // this "directory" no certificate is ever found.
    client->set_ca_cert_path("", "/dev/null");
  }
  return client;
}

std::string ExplainRefusedCertificate(long result, const ClientConfig& config,
                                      const std::string& server) {
  const std::string certificate = "the certificate of " + server;
  const std::string authority =
      config.ca_pem.empty() ? "one of this machine's authorities (the configuration names none)"
                            : "the configured certificate authority";
  switch (result) {
    case X509_V_OK:  // httplib's own check of the name failed
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return certificate + " is not for \"" + ServerName(config) +
             "\": use a name that it is for, or say which one in tls-server-name";
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return certificate + " (or its authority's) has expired";
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return certificate + " is not valid yet: is this machine's clock right?";
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return certificate + " is not signed by " + authority;
    default:
      return certificate + " can't be trusted: " + X509_verify_cert_error_string(result);
  }
}

}  // namespace ringmaster::kube
