// Readers that the codecs of this folder share. Private to this folder.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "common/fields/reader.h"
#include "common/membership/ballot.h"
#include "common/membership/view.h"

namespace ringmaster::membership {

tl::expected<View, std::string> ReadView(const nlohmann::json& value, std::string path);
tl::expected<Pod, std::string> ReadPod(const nlohmann::json& value, std::string path);
tl::expected<Worker, std::string> ReadWorker(const nlohmann::json& value, std::string path);
tl::expected<Candidate, std::string> ReadCandidate(const nlohmann::json& value, std::string path);
void ReadReason(fields::Reader* reader, const char* field, Reason* out);

// Absent fields leave `out` as it is.
void ReadBallot(fields::Reader* reader, const char* field, Ballot* out);
void ReadViewPtr(fields::Reader* reader, const char* field, ViewPtr* out);
nlohmann::json BallotJson(const Ballot& ballot);

}  // namespace ringmaster::membership
