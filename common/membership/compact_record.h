// The record of a large job as text: half as long as the plain form, and far shorter after
// deflation. A pod or rank is a list of values without field names; an address leaves out its host
// where that is the host of the pod's own address; and the accepted value refers to the entries of
// the view that it takes over.
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
