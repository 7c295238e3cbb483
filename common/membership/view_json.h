// The one JSON codec of views (docs/contracts.md section 3). Unknown fields are ignored; a missing
// or wrong one gives an error that names the field, the value and what is allowed.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "common/membership/view.h"

namespace ringmaster::membership {

nlohmann::json ToJson(const View& view);
nlohmann::json ToJson(const Pod& pod);
nlohmann::json ToJson(const Worker& worker);
// {"pod": {..}, "workers": [{..}]}, as in Readiness.member.
nlohmann::json ToJson(const Candidate& candidate);

tl::expected<View, std::string> ViewFromJson(const nlohmann::json& json);
tl::expected<Candidate, std::string> CandidateFromJson(const nlohmann::json& json);

// The same codec, to and from text.
std::string EncodeView(const View& view);
tl::expected<View, std::string> DecodeView(std::string_view text);
std::string EncodeCandidate(const Candidate& candidate);
tl::expected<Candidate, std::string> DecodeCandidate(std::string_view text);

}  // namespace ringmaster::membership
