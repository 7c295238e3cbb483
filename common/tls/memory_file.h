// A file in memory with a path that only this process can use, for interfaces that take only paths.
// A key in it never reaches a disk, and the container needs no writable directory.
#pragma once

#include <memory>
#include <string>
#include <tl/expected.hpp>

namespace ringmaster::tls {

class MemoryFile {
 public:
  static tl::expected<std::unique_ptr<MemoryFile>, std::string> Create(const std::string& content);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;

  const std::string& path() const { return path_; }
  bool Write(const std::string& content);

 private:
  explicit MemoryFile(int fd);

  const int fd_;
  const std::string path_;
};

}  // namespace ringmaster::tls
