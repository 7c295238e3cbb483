// JSON codec of what is stored: a member's state file and the record's API object.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "common/membership/member.h"
#include "common/membership/quorum_record.h"

namespace ringmaster::membership {

std::string EncodeState(const PersistentState& state);
tl::expected<PersistentState, std::string> DecodeState(std::string_view text);

std::string EncodeRecord(const QuorumRecord& state);
tl::expected<QuorumRecord, std::string> DecodeRecord(std::string_view text);

}  // namespace ringmaster::membership
