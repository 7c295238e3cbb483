// The authority that signs the certificates of the operator and of every job: made once, kept in
// the Secret `ringmaster-ca` of the operator's namespace. Whoever comes second takes what is there,
// so that two operators, or one that starts again, have the same.
#pragma once

#include <string>

#include "common/tls/certificate.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::controllers {

inline constexpr char kAuthoritySecret[] = "ringmaster-ca";

// The error names the Secret and says what to do about it.
kube::Result<tls::KeyPair> LoadCertificateAuthority(kube::KubeApi* api, const std::string& ns,
                                                    tls::Time now);

}  // namespace ringmaster::controllers
