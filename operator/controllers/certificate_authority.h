// The authority that signs the certificates of the operator and of all jobs. It is created once and
// kept in the Secret `ringmaster-ca` of the operator's namespace. A second operator, or a restarted
// one, uses the existing Secret, so all have the same authority.
#pragma once

#include <string>

#include "common/tls/certificate.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::controllers {

inline constexpr char kAuthoritySecret[] = "ringmaster-ca";

// The error names the Secret and says how to mend it.
kube::Result<tls::KeyPair> LoadCertificateAuthority(kube::KubeApi* api, const std::string& ns,
                                                    tls::Time now);

}  // namespace ringmaster::controllers
