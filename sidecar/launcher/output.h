// What the workers of a pod print, as whole lines with the worker's number in front: `[1] loss
// 0.3`. Where a pod has one process alone it writes to the launcher's own files, and nothing of
// this is used, unless what each worker prints is to be kept in files of its own, too.
//
// When whoever reads the launcher's output does not keep up, the workers wait for it, as they would
// without the launcher; the launcher itself never waits.
//
// Thread rule: the launcher's one thread.
#pragma once

#include <poll.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/lines/line_splitter.h"

namespace ringmaster::launcher {

class Output {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // For a process that is started; closed with this. -1: the launcher's own files.
  struct Files {
    Files() = default;
    Files(Files&& other) noexcept;
    Files& operator=(Files&& other) = delete;
    ~Files();
    int output = -1, error = -1;
  };

  struct Options {
    bool labelled = false;
    std::string keep_in;  // a directory: what each worker prints is kept there; empty: nowhere
    int output = 1, error = 2;  // where lines go; tests give others
  };
  explicit Output(const Options& options);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // `family` names the process for Label().
  Files Open(int family, const std::string& label);
  // From now on its lines begin with this.
  void Label(int family, const std::string& label);

  // What poll(2) shall wait for.
  void AddTo(std::vector<pollfd>* fds) const;
  // Hands on what can be read and written without waiting.
  void Pass(TimePoint now);
  // Nobody writes any more: the rest, lines without an end too, as far as the reader takes it until
  // the deadline.
  void Finish(TimePoint deadline);

 private:
  struct Source;
  struct Sink {
    int fd;
    std::string waiting = {};  // whole lines that could not be written yet
    size_t lost = 0;           // bytes that could not be written at all, since some could
    int why = 0;               // an errno: why they could not
  };

  static bool Writable(int fd);
  static void Write(Sink* sink);
  static void TellLoss(Sink* sink);
  bool Read(Source* source, TimePoint now);
  int AddPipe(int family, Sink* sink, const char* file);

  const Options options_;
  Sink output_, error_;
  std::map<int, std::string> labels_;  // by family
  std::vector<std::unique_ptr<Source>> sources_;
};

}  // namespace ringmaster::launcher
