// Certificates and keys, from PEM to OpenSSL's objects.
//
// Thread rule: free functions, safe from any thread.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <vector>

#include "operator/kube/kube_api.h"

namespace ringmaster::kube {

struct FreeOpenssl {
  void operator()(BIO* p) const { BIO_free(p); }
  void operator()(X509* p) const { X509_free(p); }
  void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
  void operator()(X509_STORE* p) const { X509_STORE_free(p); }
};
template <class T>
using Owned = std::unique_ptr<T, FreeOpenssl>;

// All certificates of the text, in its order; none if it is no PEM.
std::vector<Owned<X509>> ReadCertificates(const std::string& pem);

// Null if there is no key without a passphrase in the text.
Owned<EVP_PKEY> ReadKey(const std::string& pem);

// Checks that OpenSSL can read a client's certificate and key and that they belong together; the
// error, which has `code`, says which of these is not so. `server`: whom they are for.
Result<void> CheckPair(const std::string& cert_pem, const std::string& key_pem,
                       const std::string& server, ErrorCode code);

}  // namespace ringmaster::kube
