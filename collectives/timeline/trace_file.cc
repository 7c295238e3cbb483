#include "collectives/timeline/trace_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "collectives/fork_guard/fork_guard.h"

namespace ringmaster::timeline {

TraceFile::~TraceFile() { (void)Close(); }

Status TraceFile::Open(const std::string& path, bool fresh, const Process& process) {
  fd_ = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (fresh ? O_EXCL : O_TRUNC), 0644);
  if (fd_ < 0) {
    const int why = errno;
    return {why == EEXIST ? RM_ERR_UNAVAILABLE : RM_ERR_INVALID,
            "the timeline " + path + " can't be written: " + std::strerror(why)};
  }
  fork_guard::Own(fd_);
  path_ = path;
  text_.emplace(process.rank);
  const std::string rank = std::to_string(process.rank);
  buffer_ += "[\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":" + rank +
             ",\"args\":{\"name\":" + TraceText::Quoted("rank " + rank + ": " + process.worker) +
             ",\"job\":" + TraceText::Quoted(process.job) + "}}" + text_->Rows();
  return {};
}

void TraceFile::Write(const Event& event) { buffer_ += text_->Of(event); }

void TraceFile::WriteDropped(size_t count, Clock::time_point now) {
  Write({Row::kViews,
         "events dropped: the disk was too slow",
         "",
         now,
         now,
         {{{"events", static_cast<int64_t>(count)}}}});
}

void TraceFile::Flush() {
  size_t written = 0;
  while (!failed_ && written < buffer_.size()) {
    const ssize_t rc = write(fd_, buffer_.data() + written, buffer_.size() - written);
    if (rc > 0) written += static_cast<size_t>(rc);
    failed_ = rc < 0 && errno != EINTR;
  }
  buffer_.clear();
}

Status TraceFile::Close() {
  if (fd_ < 0) return {};
  buffer_ += "\n]\n";
  Flush();
  const bool closed = CloseDescriptor();
  if (!failed_ && closed) return {};
  return {RM_ERR_INTERNAL, "not all of the timeline could be written to " + path_};
}

void TraceFile::Discard() {
  buffer_.clear();
  if (fd_ >= 0) (void)CloseDescriptor();
}

bool TraceFile::CloseDescriptor() {
  fork_guard::Disown(fd_);
  const bool closed = close(fd_) == 0;
  fd_ = -1;
  return closed;
}

}  // namespace ringmaster::timeline
