// Rules for the text values among the operator's settings.
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

// Keeps empty parts: "" has one.
std::vector<std::string> Split(const std::string& text, char separator);
// The parts of a list with commas; an empty text has none.
std::vector<std::string> Names(const std::string& text);

// A rule is applied only to non-empty texts.
struct TextRule {
  const char* allowed;  // in words, for the error
  bool (*good)(const std::string&);
};

extern const TextRule kHostPortText;
extern const TextRule kGrpcListenText;  // gRPC itself checks the address when it listens
extern const TextRule kGrpcTargetText;
extern const TextRule kImageText;
extern const TextRule kNamespaceText;
extern const TextRule kNamespacesText;
extern const TextRule kObjectNameText;
extern const TextRule kTaintKeysText;  // refuses whole taints with value and effect
extern const TextRule kResourcesText;  // the API server checks the quantities

}  // namespace ringmaster::app
