// JSON codec of protocol messages (MemberMessage.body, RecordRequest.message, RecordReply.message)
// and of what a pod reports to the operator in a recovery from quorum loss (RecoveryReport.body).
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "common/membership/message.h"
#include "common/membership/quorum_loss.h"

namespace ringmaster::membership {

std::string EncodeMessage(const Message& message);
tl::expected<Message, std::string> DecodeMessage(std::string_view text);

std::string EncodeReport(const RecoveryReport& report);
tl::expected<RecoveryReport, std::string> DecodeReport(std::string_view text);

}  // namespace ringmaster::membership
