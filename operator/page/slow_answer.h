// An answer of an HTTP server that is worked out by a thread of its own, while the server's goes
// on. It ends when it is there, or when nobody waits for it any more.
#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "common/http/server.h"

namespace ringmaster::page {

http::Response SlowAnswer(std::string content_type,
                          std::function<std::string(std::stop_token stop)> work);

}  // namespace ringmaster::page
