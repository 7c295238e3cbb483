#include "operator/inspection/sidecar_token.h"

#include <fmt/format.h>

#include "common/fields/fields.h"
#include "common/ring_key/ring_key.h"
#include "operator/controllers/child_names.h"
#include "operator/kube/base64.h"

namespace ringmaster::inspection {
namespace {

// The uid of the object's controlling owner.
std::string OwnerOf(const kube::Json& object) {
  for (const kube::Json& owner : fields::ListAt(object, "/metadata/ownerReferences"))
    if (fields::Flag(owner, "controller")) return fields::Text(owner, "uid");
  return "";
}

}  // namespace

kube::Result<std::string> SidecarTokenOfRun(const std::filesystem::path& run_dir) {
  const std::filesystem::path file = run_dir / ring_key::kFileName;
  std::error_code unreadable;
  if (!std::filesystem::exists(file, unreadable)) return std::string();
  const auto key = ring_key::ReadFile(file);
  if (!key)
    return tl::unexpected(
        kube::Error{.code = kube::ErrorCode::kUnavailable, .message = key.error()});
  return ring_key::MakeToken(*key);
}

kube::Result<JobToken> SidecarTokenOfJob(kube::KubeApi* api, const std::string& ns,
                                         const std::string& job) {
  const std::string name = controllers::TlsSecretName(job);
  const auto secret = api->Get(kube::Secrets(), ns, name);
  if (!secret && secret.error().code == kube::ErrorCode::kNotFound) return JobToken();
  if (!secret) return tl::unexpected(secret.error());
  const std::string uid = OwnerOf(*secret);
  const std::string text = fields::Text(fields::Member(*secret, "data"), ring_key::kFileName);
  const auto key = kube::DecodeBase64(text);
  if (key && key->empty()) return JobToken{"", uid};
  if (key && key->size() == ring_key::kBytes) return JobToken{ring_key::MakeToken(*key), uid};
  return tl::unexpected(kube::Error{
      .code = kube::ErrorCode::kInternal,
      .message = fmt::format("Secret {}/{}: {} has {} bytes, {} are expected", ns, name,
                             ring_key::kFileName, key ? key->size() : 0, ring_key::kBytes)});
}

}  // namespace ringmaster::inspection
