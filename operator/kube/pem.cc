#include "operator/kube/pem.h"

#include <openssl/pem.h>

#include "operator/kube/errors.h"

namespace ringmaster::kube {
namespace {

Owned<BIO> Memory(const std::string& text) {
  return Owned<BIO>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

}  // namespace

std::vector<Owned<X509>> ReadCertificates(const std::string& pem) {
  std::vector<Owned<X509>> certificates;
  Owned<BIO> in = Memory(pem);
  while (X509* cert = PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr)) {
    certificates.emplace_back(cert);
  }
  return certificates;
}

Owned<EVP_PKEY> ReadKey(const std::string& pem) {
  // Without this callback OpenSSL would ask for a passphrase at the terminal.
  auto no_passphrase = [](char*, int, int, void*) { return -1; };
  return Owned<EVP_PKEY>(
      PEM_read_bio_PrivateKey(Memory(pem).get(), nullptr, no_passphrase, nullptr));
}

Result<void> CheckPair(const std::string& cert_pem, const std::string& key_pem,
                       const std::string& server, ErrorCode code) {
  auto certificates = ReadCertificates(cert_pem);
  if (certificates.empty())
    return Fail(code, "the client certificate for " + server + " is not PEM");
  Owned<EVP_PKEY> key = ReadKey(key_pem);
  if (!key) {
    return Fail(code, "the client key for " + server + " is " +
                          (key_pem.empty() ? "missing" : "not an unencrypted PEM key"));
  }
  if (X509_check_private_key(certificates.front().get(), key.get()) != 1) {
    return Fail(
        code, "the client certificate and the client key for " + server + " don't belong together");
  }
  return {};
}

}  // namespace ringmaster::kube
