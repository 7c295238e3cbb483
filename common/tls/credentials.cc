#include "common/tls/credentials.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>

#include "common/logging/log.h"
#include "common/sync/mutex.h"
#include "common/tls/certificate.h"

namespace ringmaster::tls {
namespace {

namespace gx = grpc::experimental;

// How often gRPC looks whether the files have changed.
constexpr unsigned kRefreshSeconds = 1;
// A peer that is refused tries again and again: the same reason is logged once in this time.
constexpr std::chrono::seconds kLogAgain{10};

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string ToString(grpc::string_ref text) { return {text.data(), text.size()}; }

bool Matches(const PeerName& wanted, const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    if (!wanted.exact.empty()) return name == wanted.exact;
    return name.size() > wanted.suffix.size() && name.ends_with(wanted.suffix);
  });
}

std::string Describe(const std::vector<std::string>& names) {
  return names.empty() ? "no name" : fmt::format("{}", fmt::join(names, ", "));
}

// Checks a peer's certificate instead of gRPC, so that a refusal can say why. TLS itself has made
// sure that the peer holds the key of its certificate.
class Verifier final : public gx::ExternalCertificateVerifier {
 public:
  Verifier(Files files, PeerName wanted, Role peer)
      : files_(std::move(files)), wanted_(std::move(wanted)), peer_(peer) {}

  bool Verify(gx::TlsCustomVerificationCheckRequest* request, std::function<void(grpc::Status)>,
              grpc::Status* status) override {
    const std::string why =
        WhyRefused(ToString(request->peer_cert()), ToString(request->peer_cert_full_chain()));
    if (why.empty()) return true;
    LogRefusal(why);
    *status = grpc::Status(grpc::StatusCode::UNAUTHENTICATED, why);
    return true;  // true: the check is done, and gRPC waits for no callback
  }
  void Cancel(gx::TlsCustomVerificationCheckRequest*) override {}

 private:
  std::string WhyRefused(const std::string& certificate, const std::string& chain) const {
    const char* side = peer_ == Role::kClient ? "client" : "server";
    if (certificate.empty()) return fmt::format("the {} has no certificate", side);
    const std::string why = WhyNotTrusted(ReadFile(files_.ca), certificate, chain, peer_,
                                          std::chrono::system_clock::now());
    if (!why.empty()) return fmt::format("the certificate of the {} is refused: {}", side, why);
    const auto info = ReadCertificate(certificate);
    if (info && Matches(wanted_, info->dns_names)) return "";
    return fmt::format(
        "the certificate of the {} is for {}, wanted: {}", side,
        Describe(info ? info->dns_names : std::vector<std::string>{}),
        wanted_.exact.empty() ? "a name that ends with " + wanted_.suffix : wanted_.exact);
  }

  void LogRefusal(const std::string& why) {
    const auto now = std::chrono::steady_clock::now();
    const sync::MutexLock lock(&mu_);
    std::erase_if(logged_, [&](const auto& entry) { return now - entry.second > kLogAgain; });
    if (logged_.emplace(why, now).second)
      logging::Warn("TLS connection refused reason=\"{}\"", why);
  }

  const Files files_;
  const PeerName wanted_;
  const Role peer_;
  sync::Mutex mu_;
  std::map<std::string, std::chrono::steady_clock::time_point> logged_ GUARDED_BY(mu_);
};

template <class Options>
void Fill(const Files& files, PeerName wanted, Role peer, Options* options) {
  options->watch_root_certs();
  options->watch_identity_key_cert_pairs();
  options->set_certificate_verifier(
      gx::ExternalCertificateVerifier::Create<Verifier>(files, std::move(wanted), peer));
  options->set_check_call_host(false);  // the name is checked once, for the connection
}

std::shared_ptr<gx::CertificateProviderInterface> Watch(const Files& files) {
  return std::make_shared<gx::FileWatcherCertificateProvider>(files.key, files.certificate,
                                                              files.ca, kRefreshSeconds);
}

}  // namespace

Files FilesIn(const std::string& directory) {
  return {directory + "/ca.crt", directory + "/tls.crt", directory + "/tls.key"};
}

std::string WhyNotUsable(const Files& files, const std::string& name) {
  for (const std::string& path : {files.ca, files.certificate, files.key}) {
    if (ReadFile(path).empty()) return path + " is not there, empty or not readable";
  }
  for (const std::string& path : {files.ca, files.certificate}) {
    if (const auto info = ReadCertificate(ReadFile(path)); !info) return path + ": " + info.error();
  }
  if (!KeyFits({ReadFile(files.certificate), ReadFile(files.key)})) {
    return files.key + " is not the key of " + files.certificate;
  }
  const auto names = ReadCertificate(ReadFile(files.certificate))->dns_names;
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    return fmt::format("{} is for {}, and not for {}", files.certificate,
                       names.empty() ? "no name" : fmt::format("{}", fmt::join(names, ", ")), name);
  }
  return "";
}

std::shared_ptr<grpc::ServerCredentials> ServerCredentials(const Files& files, PeerName clients) {
  gx::TlsServerCredentialsOptions options(Watch(files));
  // "Don't verify" turns off gRPC's own check, which refuses without a reason: Verifier does it.
  options.set_cert_request_type(GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_BUT_DONT_VERIFY);
  Fill(files, std::move(clients), Role::kClient, &options);
  return gx::TlsServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> ChannelCredentials(const Files& files, PeerName server) {
  gx::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(Watch(files));
  options.set_verify_server_certs(false);  // Verifier checks instead, as above
  Fill(files, std::move(server), Role::kServer, &options);
  return gx::TlsCredentials(options);
}

bool HasName(const std::shared_ptr<const grpc::AuthContext>& peer, const std::string& name) {
  if (peer == nullptr || !peer->IsPeerAuthenticated()) return false;
  const auto names = peer->FindPropertyValues(GRPC_X509_SAN_PROPERTY_NAME);
  return std::any_of(names.begin(), names.end(),
                     [&](grpc::string_ref one) { return ToString(one) == name; });
}

}  // namespace ringmaster::tls
