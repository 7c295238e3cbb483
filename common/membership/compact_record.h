// The record of a large job as text: half as long as the plain form, and far shorter after
// deflation. Its views are in the compact form (compact_view.h); the accepted value refers to the
// entries of the view that it takes over.
//
// Pure. The plain form (state_json.h) is the one that people and older operators read.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "common/membership/quorum_record.h"

namespace ringmaster::membership {

std::string EncodeCompactRecord(const QuorumRecord& state);
tl::expected<QuorumRecord, std::string> DecodeCompactRecord(std::string_view text);

}  // namespace ringmaster::membership
