// An HTTP answer that a thread of its own computes while the server's thread goes on. It ends when
// it is complete, or when the client is gone.
#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "common/http/server.h"

namespace ringmaster::page {

http::Response SlowAnswer(std::string content_type,
                          std::function<std::string(std::stop_token stop)> work);

}  // namespace ringmaster::page
