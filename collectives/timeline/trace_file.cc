#include "collectives/timeline/trace_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>

#include "collectives/fork_guard/fork_guard.h"

namespace ringmaster::timeline {
namespace {

// In the order of Row; rows of tensors come after them.
constexpr const char* kRowNames[] = {"steps", "rounds", "operations", "views"};
constexpr int kFirstTensorRow = 10;
constexpr int kOtherTensors = kFirstTensorRow - 1;

// A JSON string. What isn't UTF-8 is replaced.
std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// With a point, whatever locale the script has set.
std::string Decimal(double value) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, 3).ptr;
  return {text, end};
}

}  // namespace

TraceFile::TraceFile() : steady_(Clock::now()), wall_(std::chrono::system_clock::now()) {}

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
  rank_ = process.rank;
  Put("[\n");
  Put("{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":" + std::to_string(rank_) +
      ",\"args\":{\"name\":" +
      Quoted(std::string("rank ") + std::to_string(rank_) + ": " + process.worker) +
      ",\"job\":" + Quoted(process.job) + "}}");
  for (size_t row = 0; row < std::size(kRowNames); ++row) {
    Introduce("thread_name", static_cast<int>(row), kRowNames[row]);
  }
  return {};
}

void TraceFile::Introduce(const char* key, int row, const std::string& name) {
  Put(",\n{\"ph\":\"M\",\"name\":\"" + std::string(key) + "\",\"pid\":" + std::to_string(rank_) +
      ",\"tid\":" + std::to_string(row) + ",\"args\":{\"name\":" + Quoted(name) + "}}");
}

int TraceFile::RowOf(const Event& event) {
  if (event.row != Row::kTensor) return static_cast<int>(event.row);
  const auto known = rows_.find(event.name);
  if (known != rows_.end()) return known->second;
  if (rows_.size() == kMostTensorRows) {
    Introduce("thread_name", kOtherTensors, "other tensors");
    rows_.emplace(std::string(), kOtherTensors);  // from now on there is one more
  }
  if (rows_.size() > kMostTensorRows) return kOtherTensors;
  const int row = kFirstTensorRow + static_cast<int>(rows_.size());
  rows_.emplace(event.name, row);
  Introduce("thread_name", row, event.name);
  return row;
}

double TraceFile::Microseconds(Clock::time_point at) const {
  using Micro = std::chrono::duration<double, std::micro>;
  return std::chrono::duration_cast<Micro>(wall_.time_since_epoch()).count() +
         std::chrono::duration_cast<Micro>(at - steady_).count();
}

void TraceFile::Write(const Event& event) {
  const int row = RowOf(event);
  std::string times = "\"ph\":\"i\",\"s\":\"t\",\"ts\":" + Decimal(Microseconds(event.begin));
  if (event.end != event.begin) {
    const std::chrono::duration<double, std::micro> took = event.end - event.begin;
    times = "\"ph\":\"X\",\"ts\":" + Decimal(Microseconds(event.begin)) +
            ",\"dur\":" + Decimal(took.count());
  }
  std::string name = event.what;
  if (event.row != Row::kTensor && !event.name.empty()) name += " " + event.name;
  std::string text = ",\n{\"name\":" + Quoted(name) + "," + times +
                     ",\"pid\":" + std::to_string(rank_) + ",\"tid\":" + std::to_string(row) +
                     ",\"args\":{";
  const char* separator = "";
  for (const Event::Number& number : event.numbers) {
    if (number.key == nullptr) continue;
    text += std::string(separator) + "\"" + number.key + "\":" + std::to_string(number.value);
    separator = ",";
  }
  if (row == kOtherTensors) text += std::string(separator) + "\"tensor\":" + Quoted(event.name);
  Put(text + "}}");
}

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
  Put("\n]\n");
  Flush();
  fork_guard::Disown(fd_);
  const bool closed = close(fd_) == 0;
  fd_ = -1;
  if (!failed_ && closed) return {};
  return {RM_ERR_INTERNAL, "not all of the timeline could be written to " + path_};
}

}  // namespace ringmaster::timeline
