// What an API server demands of metadata, whatever the kind.
//
// Thread rule: pure.
#pragma once

#include <string>
#include <vector>

#include "operator/local/status.h"

namespace ringmaster::local {

// A name as RFC 1123 has it: a subdomain, and a label, which is a subdomain without dots.
bool IsDnsName(const std::string& text);
bool IsDnsLabel(const std::string& text);

// Of labels, annotations, owner references and finalizers; the name is checked elsewhere.
std::vector<Cause> CheckMetadata(const Json& meta);

}  // namespace ringmaster::local
