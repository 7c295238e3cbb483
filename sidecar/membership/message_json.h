// JSON codec of protocol messages (MemberMessage.body, RecordRequest.message, RecordReply.message).
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "sidecar/membership/message.h"

namespace ringmaster::membership {

std::string EncodeMessage(const Message& message);
tl::expected<Message, std::string> DecodeMessage(std::string_view text);

}  // namespace ringmaster::membership
