#include "common/tls/certificate.h"

#include <arpa/inet.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <memory>

#include "common/wall_time/wall_time.h"

namespace ringmaster::tls {
namespace {

struct Free {
  void operator()(BIO* p) const { BIO_free(p); }
  void operator()(BIGNUM* p) const { BN_free(p); }
  void operator()(X509* p) const { X509_free(p); }
  void operator()(X509_STORE* p) const { X509_STORE_free(p); }
  void operator()(X509_STORE_CTX* p) const { X509_STORE_CTX_free(p); }
  void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
  void operator()(X509_EXTENSION* p) const { X509_EXTENSION_free(p); }
  void operator()(GENERAL_NAMES* p) const { GENERAL_NAMES_free(p); }
  void operator()(STACK_OF(X509) * p) const { sk_X509_pop_free(p, X509_free); }
};
template <class T>
using Owned = std::unique_ptr<T, Free>;

Owned<BIO> Reader(const std::string& text) {
  return Owned<BIO>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

template <class F>
std::string ToPem(F write) {
  Owned<BIO> out(BIO_new(BIO_s_mem()));
  if (!out || write(out.get()) != 1) return "";
  char* data = nullptr;
  const long size = BIO_get_mem_data(out.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

// All certificates of a PEM text.
std::vector<Owned<X509>> ReadAll(const std::string& pem) {
  std::vector<Owned<X509>> all;
  const Owned<BIO> in = Reader(pem);
  while (X509* one = PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr)) all.emplace_back(one);
  ERR_clear_error();  // "no start line" ends every file
  return all;
}

Owned<EVP_PKEY> ReadKey(const std::string& pem) {
  const Owned<BIO> in = Reader(pem);
  // Our keys have no password. Without this OpenSSL would ask for one on the terminal.
  const auto no_password = [](char*, int, int, void*) { return 0; };
  Owned<EVP_PKEY> key(PEM_read_bio_PrivateKey(in.get(), nullptr, no_password, nullptr));
  ERR_clear_error();
  return key;
}

std::string KeyToPem(EVP_PKEY* key) {
  return ToPem([&](BIO* out) {
    return PEM_write_bio_PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
}

Time ToTime(const ASN1_TIME* time) {
  std::tm parts{};
  if (time == nullptr || ASN1_TIME_to_tm(time, &parts) != 1) return {};
  return wall_time::FromUnixSeconds(timegm(&parts));
}

std::string Text(Time time) { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(time)); }

bool AddExtension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  Owned<X509_EXTENSION> extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool SetSerial(X509* certificate) {
  unsigned char bytes[16];
  if (RAND_bytes(bytes, sizeof bytes) != 1) return false;
  bytes[0] = static_cast<unsigned char>((bytes[0] & 0x7f) | 0x40);  // positive and never short
  const Owned<BIGNUM> number(BN_bin2bn(bytes, sizeof bytes, nullptr));
  return number && BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

// A certificate without extensions and signature.
Owned<X509> Draft(const char* common_name, EVP_PKEY* key, Time now, std::chrono::seconds lifetime) {
  Owned<X509> certificate(X509_new());
  if (!certificate || !SetSerial(certificate.get())) return nullptr;
  X509_set_version(certificate.get(), X509_VERSION_3);
  const auto begin = std::chrono::system_clock::to_time_t(now - kClockSkew);
  const auto end = std::chrono::system_clock::to_time_t(now + lifetime);
  ASN1_TIME_set(X509_getm_notBefore(certificate.get()), begin);
  ASN1_TIME_set(X509_getm_notAfter(certificate.get()), end);
  X509_set_pubkey(certificate.get(), key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(common_name), -1, -1, 0);
  return certificate;
}

std::string CertificateToPem(X509* certificate) {
  return ToPem([&](BIO* out) { return PEM_write_bio_X509(out, certificate); });
}

std::string Explain(int error, const X509* certificate) {
  switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return "it expired at " + Text(ToTime(X509_get0_notAfter(certificate)));
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "it is not valid before " + Text(ToTime(X509_get0_notBefore(certificate)));
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return "it was signed by another authority";
    default:
      return X509_verify_cert_error_string(error);
  }
}

}  // namespace

std::string JobName(const std::string& job_uid) { return job_uid + kJobDomain; }

tl::expected<KeyPair, std::string> MakeAuthority(Time now, std::chrono::seconds lifetime) {
  const Owned<EVP_PKEY> key(EVP_EC_gen("P-256"));
  if (!key) return tl::unexpected<std::string>("OpenSSL can't make a key");
  const Owned<X509> certificate = Draft("ringmaster.dev authority", key.get(), now, lifetime);
  X509* self = certificate.get();
  if (!self || X509_set_issuer_name(self, X509_get_subject_name(self)) != 1 ||
      !AddExtension(self, self, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
      !AddExtension(self, self, NID_key_usage, "critical,keyCertSign") ||
      !AddExtension(self, self, NID_subject_key_identifier, "hash") ||
      X509_sign(self, key.get(), EVP_sha256()) == 0) {
    return tl::unexpected<std::string>("OpenSSL can't make the authority's certificate");
  }
  return KeyPair{CertificateToPem(self), KeyToPem(key.get())};
}

struct Issuer::Parts {
  Owned<X509> certificate;
  Owned<EVP_PKEY> key;
};

tl::expected<Issuer, std::string> Issuer::Of(const KeyPair& authority) {
  auto certificates = ReadAll(authority.certificate_pem);
  Owned<EVP_PKEY> key = ReadKey(authority.key_pem);
  if (certificates.empty() || !key) {
    return tl::unexpected<std::string>("the authority has no certificate and key that can be read");
  }
  return Issuer(std::make_shared<const Parts>(
      Parts{.certificate = std::move(certificates.front()), .key = std::move(key)}));
}

tl::expected<KeyPair, std::string> Issue(const KeyPair& authority,
                                         const std::vector<std::string>& names, Time now,
                                         std::chrono::seconds lifetime,
                                         const std::string& key_pem) {
  const auto issuer = Issuer::Of(authority);
  if (!issuer) return tl::unexpected(issuer.error());
  return issuer->Issue(names, now, lifetime, key_pem);
}

tl::expected<KeyPair, std::string> Issuer::Issue(const std::vector<std::string>& names, Time now,
                                                 std::chrono::seconds lifetime,
                                                 const std::string& key_pem) const {
  X509* issuer = parts_->certificate.get();
  const Owned<EVP_PKEY> key(key_pem.empty() ? EVP_EC_gen("P-256") : ReadKey(key_pem).release());
  if (!key) return tl::unexpected<std::string>("OpenSSL can't make a key");
  std::string alternatives;
  for (const std::string& name : names) {
    in_addr address{};
    const bool is_address = inet_pton(AF_INET, name.c_str(), &address) == 1;
    alternatives += (alternatives.empty() ? "" : ",") + std::string(is_address ? "IP:" : "DNS:");
    alternatives += name;
  }
  const Owned<X509> certificate = Draft("ringmaster.dev", key.get(), now, lifetime);
  X509* self = certificate.get();
  if (!self || X509_set_issuer_name(self, X509_get_subject_name(issuer)) != 1 ||
      !AddExtension(self, issuer, NID_basic_constraints, "critical,CA:FALSE") ||
      !AddExtension(self, issuer, NID_key_usage, "critical,digitalSignature") ||
      !AddExtension(self, issuer, NID_ext_key_usage, "serverAuth,clientAuth") ||
      !AddExtension(self, issuer, NID_subject_key_identifier, "hash") ||
      !AddExtension(self, issuer, NID_authority_key_identifier, "keyid") ||
      !AddExtension(self, issuer, NID_subject_alt_name, alternatives) ||
      X509_sign(self, parts_->key.get(), EVP_sha256()) == 0) {
    ERR_clear_error();
    return tl::unexpected("OpenSSL can't make a certificate for " + alternatives);
  }
  return KeyPair{CertificateToPem(self), KeyToPem(key.get())};
}

tl::expected<CertificateInfo, std::string> ReadCertificate(const std::string& pem) {
  const auto all = ReadAll(pem);
  if (all.empty()) return tl::unexpected<std::string>("no certificate in PEM form");
  CertificateInfo info;
  info.not_before = ToTime(X509_get0_notBefore(all.front().get()));
  info.not_after = ToTime(X509_get0_notAfter(all.front().get()));
  const Owned<GENERAL_NAMES> names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(all.front().get(), NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_DNS) continue;
    info.dns_names.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.ia5)),
                                static_cast<size_t>(ASN1_STRING_length(name->d.ia5)));
  }
  return info;
}

bool KeyFits(const KeyPair& pair) {
  const auto all = ReadAll(pair.certificate_pem);
  const Owned<EVP_PKEY> key = ReadKey(pair.key_pem);
  const bool fits =
      !all.empty() && key && X509_check_private_key(all.front().get(), key.get()) == 1;
  ERR_clear_error();
  return fits;
}

std::string WhyNotTrusted(const std::string& ca_pem, const std::string& certificate_pem,
                          const std::string& chain_pem, Role role, Time now) {
  auto leaves = ReadAll(certificate_pem);
  if (leaves.empty()) return "it has none";
  const auto authorities = ReadAll(ca_pem);
  if (authorities.empty()) return "we have no authority's certificate ourselves";
  const Owned<X509_STORE> store(X509_STORE_new());
  for (const auto& authority : authorities) X509_STORE_add_cert(store.get(), authority.get());
  const Owned<STACK_OF(X509)> chain(sk_X509_new_null());
  for (auto& link : ReadAll(chain_pem)) sk_X509_push(chain.get(), link.release());
  const Owned<X509_STORE_CTX> context(X509_STORE_CTX_new());
  if (!context ||
      X509_STORE_CTX_init(context.get(), store.get(), leaves.front().get(), chain.get()) != 1) {
    return "OpenSSL can't check it";
  }
  X509_STORE_CTX_set_time(context.get(), 0, std::chrono::system_clock::to_time_t(now));
  X509_STORE_CTX_set_purpose(
      context.get(), role == Role::kClient ? X509_PURPOSE_SSL_CLIENT : X509_PURPOSE_SSL_SERVER);
  if (X509_verify_cert(context.get()) == 1) return "";
  const int error = X509_STORE_CTX_get_error(context.get());
  ERR_clear_error();
  const X509* where = X509_STORE_CTX_get_current_cert(context.get());
  return Explain(error, where != nullptr ? where : leaves.front().get());
}

}  // namespace ringmaster::tls
