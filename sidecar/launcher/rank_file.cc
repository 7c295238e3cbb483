#include "sidecar/launcher/rank_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "sidecar/launcher/log.h"

namespace ringmaster::launcher {

void RankFile::Open(const std::string& label) {
  Close();
  if (dir_.empty()) return;
  const std::string folder = dir_ + "/" + (label == "standby" ? label : "rank." + label);
  if (mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) return GiveUp(folder);
  path_ = folder + "/" + name_;
  fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd_ < 0) GiveUp(path_);
}

void RankFile::Append(std::string_view text) {
  while (fd_ >= 0 && !text.empty()) {
    const ssize_t put = write(fd_, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return GiveUp(path_);
    text.remove_prefix(static_cast<size_t>(put));
  }
}

void RankFile::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

void RankFile::GiveUp(const std::string& path) {
  LogError("a worker's output is not kept any more",
           {{"file", path}, {"why", std::strerror(errno)}});
  Close();
}

}  // namespace ringmaster::launcher
