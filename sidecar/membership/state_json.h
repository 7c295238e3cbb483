// JSON codec of what is stored: a member's state file and the record's API object.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "sidecar/membership/member.h"
#include "sidecar/membership/record.h"

namespace ringmaster::membership {

std::string EncodeState(const PersistentState& state);
tl::expected<PersistentState, std::string> DecodeState(std::string_view text);

std::string EncodeRecord(const RecordState& state);
tl::expected<RecordState, std::string> DecodeRecord(std::string_view text);

}  // namespace ringmaster::membership
