// Gets one page from a server that can't be trusted: the size of the answer is bounded, and so is
// the time, even if the answer comes byte by byte.
//
// Thread rule: any thread. A call blocks for at most `deadline`.
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

// The body of an answer with status 200; nullopt: there was no such answer in time. `address`:
// "IP:port" or "[IP]:port"; no name is looked up.
std::optional<std::string> Fetch(const std::string& address, const std::string& path,
                                 const FetchOptions& options);

}  // namespace ringmaster::http
