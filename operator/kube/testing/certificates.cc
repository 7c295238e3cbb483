#include "operator/kube/testing/certificates.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <atomic>
#include <stdexcept>

namespace ringmaster::kube::testing {
namespace {

void Must(bool ok) {
  if (!ok) throw std::runtime_error("OpenSSL can't make a test certificate");
}

std::shared_ptr<EVP_PKEY> NewKey() { return {EVP_EC_gen("P-256"), EVP_PKEY_free}; }

void Extend(X509* cert, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, cert, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  Must(extension != nullptr && X509_add_ext(cert, extension, -1) == 1);
  X509_EXTENSION_free(extension);
}

std::shared_ptr<X509> Blank(const std::string& name, EVP_PKEY* key, long from, long to) {
  static std::atomic<long> serial{1};
  std::shared_ptr<X509> cert(X509_new(), X509_free);
  X509_set_version(cert.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(cert.get()), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(cert.get()), from);
  X509_gmtime_adj(X509_getm_notAfter(cert.get()), to);
  X509_set_pubkey(cert.get(), key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(cert.get()), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  return cert;
}

template <class F>
std::string Pem(F write) {
  std::shared_ptr<BIO> out(BIO_new(BIO_s_mem()), BIO_free);
  Must(write(out.get()) == 1);
  char* data = nullptr;
  long size = BIO_get_mem_data(out.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

std::string CertPem(X509* cert) {
  return Pem([&](BIO* out) { return PEM_write_bio_X509(out, cert); });
}

}  // namespace

Authority::Authority(const std::string& name) : Authority(name, nullptr) {}

Authority::Authority(const std::string& name, const Authority* parent) : key_(NewKey()) {
  cert_ = Blank(name, key_.get(), -300, 3600);
  X509* issuer = parent ? parent->cert_.get() : cert_.get();
  X509_set_issuer_name(cert_.get(), X509_get_subject_name(issuer));
  Extend(cert_.get(), issuer, NID_basic_constraints, "critical,CA:TRUE");
  Extend(cert_.get(), issuer, NID_key_usage, "critical,keyCertSign");
  Must(X509_sign(cert_.get(), parent ? parent->key_.get() : key_.get(), EVP_sha256()) > 0);
  pem_ = CertPem(cert_.get());
}

Authority Authority::Intermediate(const std::string& name) const { return Authority(name, this); }

KeyPair Authority::Issue(const CertificateSpec& spec) const {
  auto key = NewKey();
  auto cert = Blank(spec.common_name, key.get(), spec.from_seconds, spec.to_seconds);
  X509_set_issuer_name(cert.get(), X509_get_subject_name(cert_.get()));
  Extend(cert.get(), cert_.get(), NID_basic_constraints, "critical,CA:FALSE");
  Extend(cert.get(), cert_.get(), NID_ext_key_usage, spec.client ? "clientAuth" : "serverAuth");
  if (!spec.san.empty()) Extend(cert.get(), cert_.get(), NID_subject_alt_name, spec.san);
  Must(X509_sign(cert.get(), key_.get(), EVP_sha256()) > 0);
  return {CertPem(cert.get()), Pem([&](BIO* out) {
            return PEM_write_bio_PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
          })};
}

}  // namespace ringmaster::kube::testing
