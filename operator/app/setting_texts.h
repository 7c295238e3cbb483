// What the texts among the operator's settings may be.
//
// Thread rule: constants and free functions.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <vector>

namespace ringmaster::app {

// "host:port" or "[v6]:port" (port 0: any free one).
struct HostPort {
  std::string host;
  int port = 0;
};
tl::expected<HostPort, std::string> ParseHostPort(const std::string& text);

// Empty parts included: "" is one of them.
std::vector<std::string> Split(const std::string& text, char separator);
// Those of a list with commas; none of an empty text.
std::vector<std::string> Names(const std::string& text);

// Asked of texts that are not empty.
struct TextRule {
  const char* allowed;  // in words, for the error
  bool (*good)(const std::string&);
};

extern const TextRule kHostPortText;
extern const TextRule kGrpcListenText;  // gRPC's own word on an address comes when it listens
extern const TextRule kGrpcTargetText;
extern const TextRule kImageText;
extern const TextRule kNamespaceText;
extern const TextRule kNamespacesText;
extern const TextRule kObjectNameText;
extern const TextRule kTaintKeysText;  // whoever writes a whole taint, value and effect, is told
extern const TextRule kResourcesText;  // the quantities are the API server's to judge

}  // namespace ringmaster::app
