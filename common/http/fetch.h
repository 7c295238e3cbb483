// One GET of one page, for who can't trust the other end: what comes is bounded, and so is the
// time, however it drips.
//
// Thread rule: none, nothing is kept. It blocks for at most `deadline`.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

namespace ringmaster::http {

struct FetchOptions {
  std::chrono::milliseconds deadline{500};
  std::size_t most_bytes = 4 << 20;  // of the answer, head and body
  std::map<std::string, std::string> headers = {};
};

// The body of a 200; nullopt: there is none, or not in time. `address`: "IP:port" or "[IP]:port",
// no name is looked up.
std::optional<std::string> Fetch(const std::string& address, const std::string& path,
                                 const FetchOptions& options);

}  // namespace ringmaster::http
