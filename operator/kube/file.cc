#include "operator/kube/file.h"

#include <cerrno>
#include <cstdio>
#include <memory>

namespace ringmaster::kube {

tl::expected<std::string, std::error_code> ReadFile(const std::filesystem::path& file) {
  const auto failed = [] {
    return tl::unexpected(std::error_code(errno, std::generic_category()));
  };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> in(std::fopen(file.c_str(), "rbe"),
                                                           &std::fclose);
  if (in == nullptr) return failed();
  std::string text;
  char buffer[4096];
  while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, in.get()))
    text.append(buffer, n);
  if (std::ferror(in.get()) != 0) return failed();
  return text;
}

}  // namespace ringmaster::kube
