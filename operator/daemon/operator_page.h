// The page of all jobs, which the leading operator serves.
//
// Thread rule: that of app::Page.
#pragma once

#include <memory>

#include "operator/app/page.h"

namespace ringmaster::daemon {

// Serves over TLS with a self-signed certificate, except on loopback.
kube::Result<std::unique_ptr<app::Page>> OpenOperatorPage(app::PageInputs inputs);

}  // namespace ringmaster::daemon
