// Certificates for tests of TLS: an authority, and valid or deliberately broken certificates signed
// by it.
//
// Thread rule: values; made by one thread.
#pragma once

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

namespace ringmaster::kube::testing {

struct KeyPair {
  std::string cert_pem;
  std::string key_pem;
};

struct CertificateSpec {
  std::string common_name = "test";
  std::string san = "IP:127.0.0.1,DNS:localhost";  // empty: none
  long from_seconds = -300;                        // validity, from now
  long to_seconds = 3600;
  bool client = false;  // extended key usage clientAuth instead of serverAuth
};

class Authority {
 public:
  explicit Authority(const std::string& name = "test authority");
  KeyPair Issue(const CertificateSpec& spec = {}) const;
  // An authority below this one.
  Authority Intermediate(const std::string& name) const;
  const std::string& pem() const { return pem_; }

 private:
  Authority(const std::string& name, const Authority* parent);
  std::shared_ptr<EVP_PKEY> key_;
  std::shared_ptr<X509> cert_;
  std::string pem_;
};

}  // namespace ringmaster::kube::testing
