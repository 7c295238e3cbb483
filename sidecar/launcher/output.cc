#include "sidecar/launcher/output.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "sidecar/launcher/log.h"
#include "sidecar/launcher/rank_file.h"

namespace ringmaster::launcher {
namespace {

// One worker that prints without end holds up neither the others nor the news of an exit.
constexpr size_t kMostAtOnce = 256 * 1024;

void CloseFile(int* fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

}  // namespace

// The reading end of what a process, and all that it has started, write to one of their files.
struct Output::Source {
  Source(int pipe, int of, Sink* to, const std::string* label, const std::string& dir,
         const char* file)
      : fd(pipe),
        family(of),
        sink(to),
        lines([this, label](std::string_view line) {
          sink->waiting.append(*label).append(line).push_back('\n');
        }),
        kept(dir, file) {}
  ~Source() { close(fd); }

  void Take(std::string_view text, bool labelled, TimePoint now) {
    kept.Append(text);
    if (labelled)
      lines.Feed(text, now);
    else
      TakeAsItIs(text);
  }
  // Both files of the process may go to one log: what the one says must not stand within a line of
  // the other.
  void TakeAsItIs(std::string_view text) {
    begun.append(text);
    const size_t end = begun.find_last_of("\n\r");
    const size_t whole = end != std::string::npos ? end + 1 : 0;
    PassOn(whole == 0 && begun.size() > lines::LineSplitter::kLongest ? begun.size() : whole);
  }
  void PassOn(size_t bytes) {
    sink->waiting.append(begun, 0, bytes);
    begun.erase(0, bytes);
  }
  void Finish() {
    lines.Finish();
    PassOn(begun.size());
  }

  const int fd;
  const int family;
  Sink* const sink;
  lines::LineSplitter lines;
  std::string begun;  // a line without its end, where lines bear no label
  RankFile kept;
};

Output::Files::Files(Files&& other) noexcept
    : output(std::exchange(other.output, -1)), error(std::exchange(other.error, -1)) {}

Output::Files::~Files() {
  CloseFile(&output);
  CloseFile(&error);
}

Output::Output(const Options& options)
    : options_(options), output_{options.output}, error_{options.error} {}

Output::~Output() = default;

// The end that the process writes to; -1 where no pipe can be had: then it writes as if there were
// one process alone.
int Output::AddPipe(int family, Sink* sink, const char* file) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  sources_.push_back(
      std::make_unique<Source>(ends[0], family, sink, &labels_[family], options_.keep_in, file));
  return ends[1];
}

Output::Files Output::Open(int family, const std::string& label) {
  Files files;
  if (!options_.labelled && options_.keep_in.empty()) return files;
  files.output = AddPipe(family, &output_, "stdout");
  files.error = AddPipe(family, &error_, "stderr");
  Label(family, label);
  return files;
}

void Output::Label(int family, const std::string& label) {
  if (options_.labelled) labels_[family] = "[" + label + "] ";
  for (const auto& source : sources_)
    if (source->family == family) source->kept.Open(label);
}

void Output::AddTo(std::vector<pollfd>* fds) const {
  for (const Sink* sink : {&output_, &error_})
    if (!sink->waiting.empty()) fds->push_back({sink->fd, POLLOUT, 0});
  for (const auto& source : sources_)
    if (source->sink->waiting.empty()) fds->push_back({source->fd, POLLIN, 0});
}

void Output::Pass(TimePoint now) {
  Write(&output_);
  Write(&error_);
  std::erase_if(sources_, [&](const auto& source) { return !Read(source.get(), now); });
  std::erase_if(labels_, [&](const auto& label) {
    return std::none_of(sources_.begin(), sources_.end(),
                        [&](const auto& source) { return source->family == label.first; });
  });
}

// False: nobody can write to it any more, and all has been read.
bool Output::Read(Source* source, TimePoint now) {
  char buffer[16 * 1024];
  for (size_t total = 0; total < kMostAtOnce && source->sink->waiting.empty();) {
    const ssize_t got = read(source->fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN;
    if (got == 0) source->Finish();
    if (got > 0) source->Take({buffer, static_cast<size_t>(got)}, options_.labelled, now);
    Write(source->sink);
    if (got == 0) return false;
    total += static_cast<size_t>(got);
  }
  return true;
}

bool Output::Writable(int fd) {
  pollfd wait{fd, POLLOUT, 0};
  return poll(&wait, 1, 0) == 1;
}

// A log on a full disk takes this line no more than the others, so it is told when there is room
// again, and at the end.
void Output::TellLoss(Sink* sink) {
  if (sink->lost == 0) return;
  LogError("output of the workers could not be written and is lost",
           {{"bytes", std::to_string(sink->lost)}, {"reason", std::strerror(sink->why)}});
  sink->lost = 0;
}

// A pipe that is writable takes so much without waiting. What can't be written at all is lost, as
// it would be for the worker.
void Output::Write(Sink* sink) {
  size_t written = 0;
  bool took = false;
  while (written < sink->waiting.size() && Writable(sink->fd)) {
    const size_t piece = std::min<size_t>(sink->waiting.size() - written, PIPE_BUF);
    const ssize_t put = write(sink->fd, sink->waiting.data() + written, piece);
    if (put < 0 && (errno == EINTR || errno == EAGAIN)) break;
    if (put < 0 && errno != EPIPE) {  // nobody reads it any more: nobody misses it
      sink->why = errno;
      sink->lost += piece;
    }
    took = put >= 0;
    written += put < 0 ? piece : static_cast<size_t>(put);
  }
  sink->waiting.erase(0, written);
  if (took) TellLoss(sink);
}

void Output::Finish(TimePoint deadline) {
  while (true) {
    const TimePoint now = std::chrono::steady_clock::now();
    Pass(now);
    std::vector<pollfd> fds;
    AddTo(&fds);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - now);
    if (fds.empty() || left.count() <= 0) break;
    poll(fds.data(), fds.size(), static_cast<int>(left.count()));
  }
  for (const auto& source : sources_) source->Finish();
  for (Sink* sink : {&output_, &error_}) {
    Write(sink);
    TellLoss(sink);
  }
}

}  // namespace ringmaster::launcher
