// What a program prints that hands out credentials.
#include <cstdint>
#include <string>

#include "operator/kube/exec_plugin.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  ringmaster::kube::ExecPlugin plugin;
  plugin.api_version = "client.authentication.k8s.io/v1";
  (void)ringmaster::kube::ReadExecAnswer(plugin, text);
  (void)ringmaster::kube::ParseTimestamp(text);
  return 0;
}
