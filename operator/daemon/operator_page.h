// The page of all jobs, served by the operator that leads.
//
// Thread rule: that of app::Page.
#pragma once

#include <memory>

#include "operator/app/page.h"

namespace ringmaster::daemon {

// Over TLS, with a certificate of its own making, but on loopback.
kube::Result<std::unique_ptr<app::Page>> OpenOperatorPage(app::PageInputs inputs);

}  // namespace ringmaster::daemon
