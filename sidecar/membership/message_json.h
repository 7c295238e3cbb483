// JSON codec of protocol messages (MemberMessage.body, RecordRequest.message, RecordReply.message)
// and of what a pod tells the arbiter (ArbitrationReport.body).
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "sidecar/membership/arbitration.h"
#include "sidecar/membership/message.h"

namespace ringmaster::membership {

std::string EncodeMessage(const Message& message);
tl::expected<Message, std::string> DecodeMessage(std::string_view text);

std::string EncodeReport(const ArbitrationReport& report);
tl::expected<ArbitrationReport, std::string> DecodeReport(std::string_view text);

}  // namespace ringmaster::membership
