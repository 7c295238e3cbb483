#include "common/tls/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace ringmaster::tls {

tl::expected<std::unique_ptr<MemoryFile>, std::string> MemoryFile::Create(
    const std::string& content) {
  const int fd = memfd_create("ringmaster", MFD_CLOEXEC);
  if (fd < 0) return tl::unexpected(std::string("memfd_create: ") + std::strerror(errno));
  std::unique_ptr<MemoryFile> file(new MemoryFile(fd));
  if (!file->Write(content))
    return tl::unexpected<std::string>("a file in memory can't be written");
  return file;
}

MemoryFile::MemoryFile(int fd) : fd_(fd), path_("/proc/self/fd/" + std::to_string(fd)) {}

MemoryFile::~MemoryFile() { close(fd_); }

bool MemoryFile::Write(const std::string& content) {
  const auto size = static_cast<ssize_t>(content.size());
  return pwrite(fd_, content.data(), content.size(), 0) == size && ftruncate(fd_, size) == 0;
}

}  // namespace ringmaster::tls
