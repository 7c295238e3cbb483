#include "operator/local/tls_material.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <memory>
#include <vector>

namespace ringmaster::local {
namespace {

struct Free {
  void operator()(BIO* p) const { BIO_free(p); }
  void operator()(X509* p) const { X509_free(p); }
  void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
  void operator()(X509_EXTENSION* p) const { X509_EXTENSION_free(p); }
};
template <class T>
using Owned = std::unique_ptr<T, Free>;

constexpr long kLifetimeSeconds = 366L * 24 * 3600;

bool AddExtension(X509* cert, X509* issuer, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, cert, nullptr, nullptr, 0);
  Owned<X509_EXTENSION> extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value));
  return extension && X509_add_ext(cert, extension.get(), -1) == 1;
}

// Signed by `issuer` and its key; null issuer: by itself.
Owned<X509> MakeCertificate(const char* name, EVP_PKEY* key, X509* issuer, EVP_PKEY* issuer_key) {
  Owned<X509> cert(X509_new());
  unsigned char serial[8];
  if (!cert || RAND_bytes(serial, sizeof serial) != 1) return nullptr;
  serial[0] &= 0x7f;
  BIGNUM* number = BN_bin2bn(serial, sizeof serial, nullptr);
  BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert.get()));
  BN_free(number);
  X509_set_version(cert.get(), 2);
  X509_gmtime_adj(X509_getm_notBefore(cert.get()), -300);  // clocks of containers may lag
  X509_gmtime_adj(X509_getm_notAfter(cert.get()), kLifetimeSeconds);
  X509_set_pubkey(cert.get(), key);
  X509_NAME* subject = X509_get_subject_name(cert.get());
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name), -1, -1, 0);
  X509* signer = issuer ? issuer : cert.get();
  X509_set_issuer_name(cert.get(), X509_get_subject_name(signer));
  bool ok = issuer ? AddExtension(cert.get(), signer, NID_basic_constraints, "critical,CA:FALSE") &&
                         AddExtension(cert.get(), signer, NID_ext_key_usage, "serverAuth") &&
                         AddExtension(cert.get(), signer, NID_subject_alt_name,
                                      "IP:127.0.0.1,DNS:localhost")
                   : AddExtension(cert.get(), signer, NID_basic_constraints, "critical,CA:TRUE") &&
                         AddExtension(cert.get(), signer, NID_key_usage, "critical,keyCertSign");
  if (!ok || X509_sign(cert.get(), issuer_key, EVP_sha256()) == 0) return nullptr;
  return cert;
}

template <class F>
std::string Pem(F write) {
  Owned<BIO> out(BIO_new(BIO_s_mem()));
  if (!out || write(out.get()) != 1) return "";
  char* data = nullptr;
  long size = BIO_get_mem_data(out.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

}  // namespace

tl::expected<TlsMaterial, std::string> MakeTlsMaterial() {
  Owned<EVP_PKEY> ca_key(EVP_EC_gen("P-256")), key(EVP_EC_gen("P-256"));
  if (!ca_key || !key) return tl::unexpected<std::string>("OpenSSL can't make keys");
  Owned<X509> ca = MakeCertificate("ringmaster local cluster", ca_key.get(), nullptr, ca_key.get());
  Owned<X509> cert = ca ? MakeCertificate("127.0.0.1", key.get(), ca.get(), ca_key.get()) : nullptr;
  if (!cert) return tl::unexpected<std::string>("OpenSSL can't make certificates");
  TlsMaterial material;
  material.ca_pem = Pem([&](BIO* out) { return PEM_write_bio_X509(out, ca.get()); });
  material.cert_pem = Pem([&](BIO* out) { return PEM_write_bio_X509(out, cert.get()); });
  material.key_pem = Pem([&](BIO* out) {
    return PEM_write_bio_PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
  return material;
}

std::string RandomHex(int bytes) {
  std::vector<unsigned char> raw(static_cast<size_t>(bytes));
  if (RAND_bytes(raw.data(), bytes) != 1) std::terminate();
  std::string text;
  for (unsigned char c : raw) {
    text += "0123456789abcdef"[c >> 4];
    text += "0123456789abcdef"[c & 15];
  }
  return text;
}

}  // namespace ringmaster::local
