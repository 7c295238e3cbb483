// The record of a large job as text: half of what the plain form takes, and far less of it after
// deflation. What a pod or rank is stands in a row without names, an address without the host that
// the pod's own begins with, and the accepted value names what it takes over from the view.
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
