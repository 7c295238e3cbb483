#include "operator/kube/file.h"

#include <cerrno>
#include <cstdio>
#include <memory>

namespace ringmaster::kube {
namespace {

// Configurations, certificates and manifests are smaller, and a path may name /dev/zero.
constexpr std::size_t kMostFileBytes = 16u << 20;

}  // namespace

tl::expected<std::string, std::error_code> ReadFile(const std::filesystem::path& file) {
  const auto failed = [] {
    return tl::unexpected(std::error_code(errno, std::generic_category()));
  };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> in(std::fopen(file.c_str(), "rbe"),
                                                           &std::fclose);
  if (in == nullptr) return failed();
  std::string text;
  char buffer[4096];
  while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, in.get())) {
    text.append(buffer, n);
    if (text.size() > kMostFileBytes) {
      return tl::unexpected(std::make_error_code(std::errc::file_too_large));
    }
  }
  if (std::ferror(in.get()) != 0) return failed();
  return text;
}

}  // namespace ringmaster::kube
