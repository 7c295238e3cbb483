#include "operator/cli/logs_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/fields/fields.h"
#include "common/lines/line_splitter.h"
#include "common/sync/mutex.h"
#include "operator/api/horovod_job.h"
#include "operator/api/labels.h"
#include "operator/cli/absence.h"
#include "operator/cli/flush.h"
#include "operator/cli/grouped_output.h"
#include "operator/cli/kube_failure.h"
#include "operator/cli/log_lines.h"
#include "operator/cli/observer.h"
#include "operator/cli/pod_log.h"
#include "operator/cli/work_queue.h"
#include "operator/inspection/inspection.h"
#include "operator/inspection/job_conditions.h"
#include "operator/inspection/sidecar_addresses.h"
#include "operator/kubelet/log_folder.h"

namespace ringmaster::cli {
namespace {

using kube::Json;

constexpr std::chrono::milliseconds kLook{200};
constexpr std::chrono::milliseconds kPause{1000};  // before a broken stream is opened again
// How long the containers may take to end after their job has ended.
constexpr std::chrono::seconds kLastWords{10};

// The requested lines of the requested pods, and their prefixes.
struct Wanted {
  std::string container;
  bool labels_lines = false;  // the launcher puts the workers' numbers in front
  int slots = 1;
  std::optional<int> rank;
  std::optional<int> tail;

  static Wanted Of(const Json& job, const LogsOptions& options) {
    Wanted wanted{options.container.empty() ? api::kWorkerContainer : options.container};
    wanted.labels_lines = LabelsLines(job) && wanted.container == api::kWorkerContainer;
    wanted.slots = static_cast<int>(fields::IntegerAt(job, "/spec/slotsPerWorker", 1));
    wanted.rank = options.rank;
    wanted.tail = options.tail;
    return wanted;
  }

  static int IndexOf(const Json& pod) {
    return std::atoi(
        fields::Text(fields::At(pod, "/metadata/labels"), api::kReplicaIndexLabel).c_str());
  }
  bool Has(int index) const { return !rank || index == *rank / slots; }
  bool Has(const Json& pod) const { return Has(IndexOf(pod)); }
  // Empty if the line has a number already.
  std::string PrefixOf(const Json& pod) const {
    if (container != api::kWorkerContainer) return fields::TextAt(pod, "/metadata/name") + ": ";
    return labels_lines ? "" : fmt::format("[{}] ", IndexOf(pod));
  }
  bool Has(std::string_view line) const {
    return !rank || !labels_lines || line.starts_with(fmt::format("[{}] ", *rank));
  }
  // The server counts the lines of all workers of a pod together, so we count those of the rank.
  bool CountsItself() const { return tail && rank && labels_lines; }
};

// Fails if none of the pods has the container that was asked for. Without pods nobody knows.
Outcome<void> CheckContainer(const std::vector<Json>& pods, const LogsOptions& options) {
  if (options.container.empty() || pods.empty()) return {};
  std::vector<std::string> there;
  for (const Json& pod : pods) {
    for (const char* list :
         {"/spec/containers", "/spec/initContainers", "/spec/ephemeralContainers"}) {
      for (const Json& container : fields::ListAt(pod, list)) {
        const std::string name = fields::Text(container, "name");
        if (name == options.container) return {};
        if (std::find(there.begin(), there.end(), name) == there.end()) there.push_back(name);
      }
    }
  }
  return Fail(ExitCode::kJobFailed,
              fmt::format("-c {}: {} has no such container; it has {}", options.container,
                          options.name, fmt::join(there, ", ")));
}

std::vector<int> IndicesOf(const std::vector<Json>& pods) {
  std::vector<int> indices;
  for (const Json& pod : pods) indices.push_back(Wanted::IndexOf(pod));
  return indices;
}

// Takes one line, without its end.
using PrintLine = std::function<void(const std::string& prefix, std::string_view line)>;

// Writes whole lines of several pods to one file, as they come.
class Printer {
 public:
  explicit Printer(std::FILE* out) : out_(out) {}
  void Line(const std::string& prefix, std::string_view line) {
    const sync::MutexLock lock(&mu_);
    const std::string whole = prefix + std::string(line) + "\n";
    std::fwrite(whole.data(), 1, whole.size(), out_);  // it may have a NUL in it
    FlushOrEnd(out_);
  }

 private:
  sync::Mutex mu_;
  std::FILE* const out_;
};

// Reads one pod's log over as many streams as needed: a line that was cut by a broken stream is
// joined.
class PodReader {
 public:
  PodReader(const inspection::Connection& to, std::string pod, const Wanted& wanted,
            std::string prefix, PrintLine print)
      : to_(to),
        pod_(std::move(pod)),
        wanted_(wanted),
        prefix_(std::move(prefix)),
        print_(std::move(print)) {}

  // Continues where the last call ended; the first call begins with the requested lines.
  Outcome<void> Read(bool follow, const std::stop_token& stop) {
    if (wanted_.CountsItself() && seen_ == 0) {
      held_.emplace();
      auto read = Stream({.container = wanted_.container}, stop);
      if (!follow) lines_.Finish();
      const std::deque<std::string> last = std::move(*held_);
      held_.reset();
      for (const std::string& line : last) print_(prefix_, line);
      if (!read || !follow) return read;
    }
    kube::PodLogOptions options{.container = wanted_.container, .follow = follow};
    skip_ = seen_;
    // The server counts `tail` from the end, so the bytes seen don't tell where to continue.
    if (wanted_.tail && !wanted_.CountsItself()) {
      options.tail = seen_ > 0 ? 0 : *wanted_.tail;
      skip_ = 0;
    }
    return Stream(options, stop);
  }

  size_t seen() const { return seen_; }
  // The last stream was shorter than what had been read before.
  bool was_replaced() const { return skip_ > 0; }
  // The log is complete, so an unfinished line is passed on, too.
  void Finish() { lines_.Finish(); }

 private:
  Outcome<void> Stream(const kube::PodLogOptions& options, const std::stop_token& stop) {
    auto on_text = [this](std::string_view text) {
      const size_t old = std::min(skip_, text.size());
      skip_ -= old;
      seen_ += text.size() - old;
      lines_.Feed(text.substr(old), std::chrono::steady_clock::now());
      return true;
    };
    auto read = to_.api->PodLogWith(to_.ns, pod_, options, on_text, stop);
    // A pod without a node has no log yet.
    constexpr int kNoContent = 204;
    if (!read && read.error().http_status != kNoContent)
      return tl::unexpected(FromKube(read.error()));
    return {};
  }

  void OnLine(std::string_view line) {
    if (!wanted_.Has(line)) return;
    if (!held_) return print_(prefix_, line);
    held_->emplace_back(line);
    if (held_->size() > static_cast<size_t>(*wanted_.tail)) held_->pop_front();
  }

  const inspection::Connection& to_;
  const std::string pod_;
  const Wanted& wanted_;
  const std::string prefix_;
  const PrintLine print_;
  size_t seen_ = 0;                              // bytes of the log that were read
  size_t skip_ = 0;                              // of these, bytes that the stream sends again
  std::optional<std::deque<std::string>> held_;  // the newest lines, while they are counted
  lines::LineSplitter lines_{[this](std::string_view line) { OnLine(line); },
                             lines::LineSplitter::kLongestLabelled};
};

Outcome<void> PrintPod(const inspection::Connection& to, const std::string& pod,
                       const Wanted& wanted, const std::string& prefix, bool follow,
                       PrintLine print) {
  PodReader reader(to, pod, wanted, prefix, std::move(print));
  Outcome<void> read;
  size_t before = 0;
  // A server gives up on a reader that stops reading for a while, as a pager does: it goes on where
  // it was. Of the last lines nobody could tell which were printed.
  do {
    before = reader.seen();
    read = reader.Read(follow, {});
  } while (!read && !wanted.tail && reader.seen() > before);
  if (read && reader.was_replaced()) {
    read =
        Fail(ExitCode::kJobFailed,
             fmt::format("the log of {} was replaced while it was read: lines are missing", pod));
  }
  reader.Finish();
  return read;
}

// Follows the present and future pods of a job, each from the start of its container.
class JobFollower {
 public:
  JobFollower(const inspection::Connection& to, const std::string& job, const Wanted& wanted,
              Printer* printer)
      : to_(to), job_(job), wanted_(wanted), printer_(printer) {}

  Outcome<void> Run() {
    auto now_there = inspection::ReadPods(to_, to_.ns, job_);
    if (!now_there) return tl::unexpected(FromKube(now_there.error()));
    for (const Json& pod : *now_there) OnPod(pod);
    if (std::none_of(now_there->begin(), now_there->end(),
                     [this](const Json& pod) { return wanted_.Has(pod); }))
      SayThatItWaits(*now_there);
    const Observer jobs(
        to_.api, kube::HorovodJobs(), to_.ns,
        [this](const Json& job, bool gone) {
          if (fields::TextAt(job, "/metadata/name") != job_) return;
          const bool ended = gone || inspection::TrueCondition(job, "Succeeded") ||
                             inspection::TrueCondition(job, "Failed");
          inbox_.Post([this, ended] { job_ended_ = ended; });
        },
        SayOnStandardError);
    const Observer pods(to_.api, kube::Pods(), to_.ns, [this](const Json& pod, bool gone) {
      if (!gone) inbox_.Post([this, pod] { OnPod(pod); });
    });
    constexpr auto kNever = std::chrono::steady_clock::time_point::max();
    auto end = kNever;
    while (true) {
      const auto now = std::chrono::steady_clock::now();
      inbox_.RunUntil(now + kLook);
      if (!to_.run_dir.empty() && HasEnded(to_.run_dir)) job_ended_ = true;
      if (!job_ended_) {
        end = kNever;  // the job was started again
        continue;
      }
      end = std::min(end, now + kLastWords);
      if (reading_ == 0 || now >= end) break;
    }
    readers_.clear();  // requests a stop and joins the threads
    return {};
  }

 private:
  // A pod with the worker may join later.
  void SayThatItWaits(const std::vector<Json>& pods) const {
    const std::string what =
        wanted_.rank ? fmt::format("--rank {}: job \"{}\" has no pod of that worker now, {}",
                                   *wanted_.rank, job_, WorkersText(IndicesOf(pods), wanted_.slots))
                     : fmt::format("job \"{}\" has no pods now", job_);
    std::fprintf(stderr, "ringmaster: %s; waiting until one joins or the job ends\n", what.c_str());
  }

  void OnPod(const Json& pod) {
    const std::string uid = fields::TextAt(pod, "/metadata/uid");
    const Json& labels = fields::At(pod, "/metadata/labels");
    if (fields::Text(labels, api::kJobNameLabel) != job_ || !wanted_.Has(pod)) return;
    if (!HasBegun(pod) || readers_.count(uid)) return;
    ++reading_;
    const std::string name = fields::TextAt(pod, "/metadata/name");
    readers_[uid] =
        std::jthread([this, uid, name, prefix = wanted_.PrefixOf(pod)](std::stop_token stop) {
          PodReader reader(to_, name, wanted_, prefix,
                           [this](const std::string& before, std::string_view line) {
                             printer_->Line(before, line);
                           });
          ReadOn(&reader, name, stop);
          reader.Finish();
          inbox_.Post([this, uid] {
            --reading_;
            readers_[uid] = {};  // joins it; the entry stays, so that the pod isn't read again
          });
        });
  }

  // A stream that is cut once is no trouble, as the next one goes on where it ended: the server
  // cuts it where nobody takes the lines for long.
  void ReadOn(PodReader* reader, const std::string& name, const std::stop_token& stop) const {
    bool goes_on = true;
    for (bool failed_before = false; goes_on;) {
      const auto read = reader->Read(true, stop);
      goes_on = GoesOn(name, stop);
      if (!read && (failed_before || !goes_on) && !stop.stop_requested())
        std::fprintf(stderr, "ringmaster: %s\n", read.error().message.c_str());
      failed_before = !read;
    }
  }

  // After a pause, the container still runs: so only the stream has ended.
  bool GoesOn(const std::string& name, const std::stop_token& stop) const {
    for (auto waited = kLook; waited <= kPause && !stop.stop_requested(); waited += kLook)
      std::this_thread::sleep_for(kLook);
    if (stop.stop_requested() || job_ended_) return false;
    return StillRuns(to_.api.get(), to_.ns, name, wanted_.container);
  }

  bool HasBegun(const Json& pod) const {
    for (const char* list : {"/status/containerStatuses", "/status/initContainerStatuses"}) {
      for (const Json& status : fields::ListAt(pod, list)) {
        if (fields::Text(status, "name") != wanted_.container) continue;
        const Json& state = fields::Member(status, "state");
        if (state.contains("running") || state.contains("terminated")) return true;
      }
    }
    return false;
  }

  const inspection::Connection& to_;
  const std::string job_;
  const Wanted wanted_;
  Printer* const printer_;
  WorkQueue inbox_;
  std::atomic<bool> job_ended_{false};
  // Used by the calling thread only:
  int reading_ = 0;
  // By pod uid; last member: the threads use the others.
  std::map<std::string, std::jthread> readers_;
};

// The log of a pod that a run on this machine keeps; empty if there is none.
std::filesystem::path KeptLog(const inspection::Connection& to, const std::string& pod,
                              const std::string& container) {
  if (to.run_dir.empty()) return "";
  const std::filesystem::path file =
      to.run_dir / "logs" / kubelet::LogFolder(to.ns, pod) / (container + ".log");
  std::error_code error;
  return std::filesystem::is_regular_file(file, error) ? file : "";
}

std::string LeftText(const std::string& pod, const std::filesystem::path& log) {
  return fmt::format("{} has left; what it printed is in {}", pod, log.string());
}

// Texts about the requested pods of the job that are not in `there`, by index.
std::vector<std::string> LeftTexts(const inspection::Connection& to, const std::string& job,
                                   const Wanted& wanted, const std::vector<Json>& there) {
  std::map<int, std::string> left;
  std::error_code error;
  if (to.run_dir.empty()) return {};
  for (const auto& entry : std::filesystem::directory_iterator(to.run_dir / "logs", error)) {
    std::string name = entry.path().filename().string();
    const std::string before = kubelet::LogFolder(to.ns, "");
    if (!name.starts_with(before)) continue;
    name = name.substr(before.size());
    const auto index = inspection::IndexInName(name, job);
    const auto log = KeptLog(to, name, wanted.container);
    if (index && wanted.Has(*index) && !log.empty()) left[*index] = LeftText(name, log);
  }
  for (const Json& pod : there) left.erase(Wanted::IndexOf(pod));
  std::vector<std::string> texts;
  for (auto& [index, text] : left) texts.push_back(std::move(text));
  return texts;
}

// For those who wonder whether the command has done anything; on standard error, which is no log.
void SayThatThereIsNothing(const LogsOptions& options) {
  if (options.tail == 0) return;
  const std::string whose =
      options.rank                 ? fmt::format("worker {} of {}", *options.rank, options.name)
      : !options.container.empty() ? fmt::format("{} of {}", options.container, options.name)
                                   : options.name;
  std::fprintf(stderr, "ringmaster: %s has printed nothing\n", whose.c_str());
}

// Reads several pods at a time, and prints one after the other. The value: whether there was a
// line.
Outcome<bool> PrintPods(const inspection::Connection& to, const std::vector<Json>& pods,
                        const Wanted& wanted, std::FILE* out) {
  GroupedOutput output(out);
  std::atomic<bool> any = false;
  std::vector<Outcome<void>> read(pods.size());
  inspection::InParallel(pods.size(), [&](size_t i) {
    read[i] =
        PrintPod(to, fields::TextAt(pods[i], "/metadata/name"), wanted, wanted.PrefixOf(pods[i]),
                 false, [&, i](const std::string& prefix, std::string_view line) {
                   any = true;
                   output.Line(i, prefix, line);
                 });
    output.End(i);
  });
  for (Outcome<void>& one : read)
    if (!one) return tl::unexpected(std::move(one.error()));
  return any;
}

Outcome<void> PrintJob(const inspection::Connection& to, const Json& job,
                       const LogsOptions& options, std::FILE* out) {
  const Wanted wanted = Wanted::Of(job, options);
  auto pods = inspection::ReadPods(to, to.ns, options.name);
  if (!pods) return tl::unexpected(FromKube(pods.error()));
  if (auto known = CheckContainer(*pods, options); !known) return known;
  if (options.follow) {
    Printer printer(out);
    return JobFollower(to, options.name, wanted, &printer).Run();
  }
  const std::string there = pods->empty() ? "" : ", " + WorkersText(IndicesOf(*pods), wanted.slots);
  std::erase_if(*pods, [&](const Json& pod) { return !wanted.Has(pod); });
  const std::vector<std::string> left = LeftTexts(to, options.name, wanted, *pods);
  if (pods->empty()) {
    std::string text = wanted.rank
                           ? fmt::format("--rank {}: job \"{}\" has no pod of that worker now{}",
                                         *wanted.rank, options.name, there)
                           : fmt::format("job \"{}\" has no pods", options.name);
    for (const std::string& one : left) text += "\n" + one;
    return Fail(ExitCode::kJobFailed, text);
  }
  const auto any = PrintPods(to, *pods, wanted, out);
  for (const std::string& one : left) std::fprintf(stderr, "ringmaster: %s\n", one.c_str());
  if (!any) return tl::unexpected(any.error());
  if (!*any) SayThatThereIsNothing(options);
  return {};
}

}  // namespace

Outcome<void> PrintLogs(const inspection::Connection& to, const Surroundings& around,
                        const LogsOptions& options, std::FILE* out) {
  auto pod = to.api->Get(kube::Pods(), to.ns, options.name);
  if (pod && options.rank)
    return Fail(ExitCode::kUsage,
                fmt::format("--rank goes with a job, and {} is a pod", options.name));
  if (pod) {
    if (auto known = CheckContainer({*pod}, options); !known) return known;
    Printer printer(out);
    bool any = false;
    auto read = PrintPod(to, options.name, Wanted::Of({}, options), "", options.follow,
                         [&](const std::string& prefix, std::string_view line) {
                           any = true;
                           printer.Line(prefix, line);
                         });
    if (read && !any && !options.follow) SayThatThereIsNothing(options);
    return read;
  }
  if (pod.error().code != kube::ErrorCode::kNotFound) return tl::unexpected(FromKube(pod.error()));
  auto job = to.api->Get(kube::HorovodJobs(), to.ns, options.name);
  if (job) return PrintJob(to, *job, options, out);
  if (job.error().code != kube::ErrorCode::kNotFound) return tl::unexpected(FromKube(job.error()));
  if (const auto kept = KeptLog(to, options.name, Wanted::Of({}, options).container); !kept.empty())
    return Fail(ExitCode::kJobFailed, LeftText(options.name, kept));
  return tl::unexpected(NotThere(to, around, NameKind::kPodOrJob, options.name, job.error()));
}

Outcome<void> Logs(const LogsOptions& options, const Surroundings& around) {
  auto to = Connect(options.target, around, Purpose::kLook);
  if (!to) return tl::unexpected(to.error());
  return PrintLogs(*to, around, options, stdout);
}

}  // namespace ringmaster::cli
