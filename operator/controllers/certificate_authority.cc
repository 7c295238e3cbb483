#include "operator/controllers/certificate_authority.h"

#include <fmt/format.h>

#include "common/logging/log.h"
#include "operator/api/labels.h"
#include "operator/controllers/child_object_builder.h"
#include "operator/kube/base64.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;

constexpr std::chrono::hours kLifetime{24 * 3650};
constexpr std::chrono::hours kWarnBefore{24 * 180};

kube::Error Explain(kube::Error error, const std::string& ns) {
  error.message += fmt::format(
      " (the operator keeps its certificate authority there: it needs the rights to get and create "
      "secrets in its own namespace, which is {}; --operator-namespace names another)",
      ns);
  return error;
}

kube::Result<tls::KeyPair> Read(const Json& secret, const std::string& ns, tls::Time now) {
  const tls::KeyPair pair{SecretValue(secret, "tls.crt"), SecretValue(secret, "tls.key")};
  const auto info = tls::ReadCertificate(pair.certificate_pem);
  std::string wrong;
  if (!info) {
    wrong = "tls.crt: " + info.error();
  } else if (!tls::KeyFits(pair)) {
    wrong = "tls.key is not the key of tls.crt";
  } else if (info->not_after < now) {
    wrong = "tls.crt has expired";
  }
  if (!wrong.empty()) {
    return tl::unexpected(kube::Error{
        .code = kube::ErrorCode::kInternal,
        .message = fmt::format("secret {}/{}: {}; delete it, and a new authority is made: jobs get "
                               "new certificates, and their sidecars take them up within minutes",
                               ns, kAuthoritySecret, wrong)});
  }
  if (info->not_after - now < kWarnBefore) {
    logging::Warn("certificate authority expires within half a year secret={}/{}", ns,
                  kAuthoritySecret);
  }
  return pair;
}

kube::Result<Json> Make(kube::KubeApi* api, const std::string& ns, tls::Time now) {
  const auto pair = tls::MakeAuthority(now, kLifetime);
  if (!pair) return tl::unexpected(kube::Error{.message = pair.error()});
  const Json secret = {{"apiVersion", "v1"},
                       {"kind", "Secret"},
                       {"metadata",
                        {{"name", kAuthoritySecret},
                         {"namespace", ns},
                         {"labels", {{api::kManagedByLabel, api::kManagedBy}}}}},
                       {"type", "kubernetes.io/tls"},
                       {"data",
                        {{"tls.crt", kube::EncodeBase64(pair->certificate_pem)},
                         {"tls.key", kube::EncodeBase64(pair->key_pem)}}}};
  auto created = api->Create(kube::Secrets(), ns, secret);
  if (created) logging::Info("certificate authority created secret={}/{}", ns, kAuthoritySecret);
  return created;
}

}  // namespace

kube::Result<tls::KeyPair> LoadCertificateAuthority(kube::KubeApi* api, const std::string& ns,
                                                    tls::Time now) {
  auto secret = api->Get(kube::Secrets(), ns, kAuthoritySecret);
  if (!secret && secret.error().code == kube::ErrorCode::kNotFound) {
    secret = Make(api, ns, now);
    // Another operator was quicker: its authority is the one to use.
    if (!secret && secret.error().code == kube::ErrorCode::kAlreadyExists) {
      secret = api->Get(kube::Secrets(), ns, kAuthoritySecret);
    }
  }
  if (!secret) return tl::unexpected(Explain(secret.error(), ns));
  return Read(*secret, ns, now);
}

}  // namespace ringmaster::controllers
