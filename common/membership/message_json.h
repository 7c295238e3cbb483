// JSON codec of protocol messages (MemberMessage.body, RecordRequest.message, RecordReply.message)
// and of what a pod reports to the operator in a recovery from quorum loss (RecoveryReport.body).
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "common/membership/message.h"
#include "common/membership/quorum_loss.h"

namespace ringmaster::membership {

// `change`: stands in the text in place of message.value (view_changes.h); empty: the value itself.
std::string EncodeMessage(const Message& message, const std::string& change = "");
// Null `change`: the value itself has to be there. Else, where a change takes its place, `change`
// gets it, and the message has no value yet.
tl::expected<Message, std::string> DecodeMessage(std::string_view text,
                                                 std::string* change = nullptr);

std::string EncodeReport(const RecoveryReport& report);
tl::expected<RecoveryReport, std::string> DecodeReport(std::string_view text);

}  // namespace ringmaster::membership
