#include "operator/kubelet/volume_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ringmaster::kubelet {
namespace {

namespace fs = std::filesystem;

bool IsBelow(const fs::path& path) {
  return !path.empty() && path.is_relative() &&
         std::find(path.begin(), path.end(), "..") == path.end();
}

// 0, or what the operating system says.
int Write(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(file, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return fchmod(file, 0600) == 0 ? 0 : errno;
}

}  // namespace

tl::expected<void, std::string> WriteVolumeFile(const fs::path& dir, const std::string& path,
                                                std::string_view bytes) {
  if (!IsBelow(path)) {
    return tl::unexpected("path \"" + path +
                          "\" is not below the volume: wanted is a relative path without \"..\"");
  }
  const fs::path file = dir / path;
  const auto fail = [&](const std::string& why) {
    return tl::unexpected(file.string() + " can't be written: " + why);
  };
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  if (error) return fail(error.message());
  const int fd = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return fail(std::strerror(errno));
  const int wrong = Write(fd, bytes);
  // Some file systems say only here that they are full.
  const bool closed = close(fd) == 0;
  if (wrong != 0) return fail(std::strerror(wrong));
  if (!closed) return fail(std::strerror(errno));
  return {};
}

}  // namespace ringmaster::kubelet
