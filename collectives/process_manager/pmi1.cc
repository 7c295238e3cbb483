#include "collectives/process_manager/pmi1.h"

#include <dlfcn.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>

#include "common/hex/hex.h"
#include "common/sync/mutex.h"

namespace ringmaster::process_manager {
namespace {

constexpr std::chrono::seconds kPatience{10};  // for the launcher, on this machine
constexpr size_t kMostLine = 1 << 16;

// "cmd=put_result rc=0 msg=success"
using Fields = std::map<std::string, std::string, std::less<>>;

Fields FieldsOf(std::string_view line) {
  Fields fields;
  while (!line.empty()) {
    const std::string_view word = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(line.size(), word.size() + 1));
    const size_t equals = word.find('=');
    if (equals != word.npos) fields.emplace(word.substr(0, equals), word.substr(equals + 1));
  }
  return fields;
}

// Sockets on which a question was not answered. A process has one until it ends, and a late answer
// would be taken for that of the next question.
class OutOfStep {
 public:
  static void Add(int socket) {
    sync::MutexLock lock(&mu_);
    inodes_.insert(InodeOf(socket));
  }
  static bool Has(int socket) {
    sync::MutexLock lock(&mu_);
    return inodes_.count(InodeOf(socket)) > 0;
  }

 private:
  static ino_t InodeOf(int socket) {
    struct stat about = {};
    return fstat(socket, &about) == 0 ? about.st_ino : 0;
  }
  static inline sync::Mutex mu_;
  static inline std::set<ino_t> inodes_ GUARDED_BY(mu_);
};

// The script calls an MPI by itself, or has called one: it speaks with the launcher over the same
// socket, and its MPI_Finalize takes the process's one leave. It may have been loaded where our
// symbols don't reach, as mpi4py does it.
bool AnMpiHasBegun() {
  for (const char* name :
       {"libmpich.so.12", "libmpi.so.12"}) {  // MPICH; all of its ABI, Intel's too
    void* const library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) continue;
    const auto initialized = reinterpret_cast<int (*)(int*)>(dlsym(library, "MPI_Initialized"));
    int begun = 0;
    const bool told = initialized != nullptr && initialized(&begun) == 0;
    dlclose(library);
    if (told && begun != 0) return true;
  }
  return false;
}

// Sends lines to the launcher and reads its answers, one at a time.
class Line {
 public:
  explicit Line(int socket) : socket_(socket) {}
  ~Line() {
    if (broken_) OutOfStep::Add(socket_);
  }

  // Each answer belongs to the question before it. After a question that was not answered, no more
  // can be asked.
  bool broken() const { return broken_; }

  Status Ask(const std::string& question, Clock::time_point deadline, Fields* answer) {
    broken_ = true;
    if (Status s = Write(question + "\n", deadline); !s.ok()) return s;
    size_t end = 0;
    while ((end = unread_.find('\n')) == unread_.npos) {
      if (unread_.size() > kMostLine) return Trouble("its answer does not end");
      if (Status s = ReadMore(deadline); !s.ok()) return s;
    }
    *answer = FieldsOf(std::string_view(unread_).substr(0, end));
    unread_.erase(0, end + 1);
    broken_ = false;
    const auto rc = answer->find("rc");
    if (rc == answer->end() || rc->second == "0") return {};
    return Trouble("'" + question.substr(0, question.find(' ')) + "' failed: " + (*answer)["msg"]);
  }

 private:
  static Status Trouble(const std::string& what) {
    return {RM_ERR_UNAVAILABLE, "the launcher of this process (PMI): " + what};
  }
  Status Write(std::string_view text, Clock::time_point deadline) {
    while (!text.empty()) {
      if (Status s = Await(POLLOUT, deadline); !s.ok()) return s;
      const ssize_t n = send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
      if (n < 0 && errno != EINTR && errno != EAGAIN) return Trouble(std::strerror(errno));
      if (n > 0) text.remove_prefix(static_cast<size_t>(n));
    }
    return {};
  }
  Status ReadMore(Clock::time_point deadline) {
    if (Status s = Await(POLLIN, deadline); !s.ok()) return s;
    char buffer[1024];
    const ssize_t n = read(socket_, buffer, sizeof(buffer));
    if (n == 0) return Trouble("it has gone");
    if (n < 0 && errno != EINTR && errno != EAGAIN) return Trouble(std::strerror(errno));
    if (n > 0) unread_.append(buffer, static_cast<size_t>(n));
    return {};
  }
  Status Await(short events, Clock::time_point deadline) {
    pollfd waits = {socket_, events, 0};
    for (;;) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
      if (left <= 0)
        return {RM_ERR_TIMEOUT, "the other processes have not called init before the deadline"};
      const int ready = poll(&waits, 1, static_cast<int>(std::min<int64_t>(left, 60'000)));
      if (ready > 0) return {};
      if (ready < 0 && errno != EINTR) return Trouble(std::strerror(errno));
    }
  }

  const int socket_;
  bool broken_ = false;
  std::string unread_;
};

class Pmi1 : public ProcessManager {
 public:
  Pmi1(int socket, int rank, int size) : line_(socket), rank_(rank), size_(size) {}
  // Hydra takes a process for failed that has sent `init` and ends without `finalize`.
  ~Pmi1() override {
    Fields answer;
    if (begun_ && !line_.broken() && !AnMpiHasBegun())
      (void)line_.Ask("cmd=finalize", Clock::now() + kPatience, &answer);
  }

  Status Begin() {
    const auto soon = Clock::now() + kPatience;
    Fields answer;
    if (Status s = line_.Ask("cmd=init pmi_version=1 pmi_subversion=1", soon, &answer); !s.ok())
      return s;
    begun_ = true;
    if (Status s = line_.Ask("cmd=get_my_kvsname", soon, &answer); !s.ok()) return s;
    space_ = answer["kvsname"];
    return {};
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string job() const override { return space_; }

  Status Exchange(const std::string& name, const std::string& mine, Clock::time_point deadline,
                  std::vector<std::string>* said) override {
    Fields answer;
    const std::string to = " kvsname=" + space_ + " key=ringmaster-" + name + "-";
    if (Status s = line_.Ask("cmd=put" + to + std::to_string(rank_) + " value=" + hex::Encode(mine),
                             deadline, &answer);
        !s.ok())
      return s;
    if (Status s = line_.Ask("cmd=barrier_in", deadline, &answer); !s.ok()) return s;
    said->clear();
    for (int rank = 0; rank < size_; ++rank) {
      if (Status s = line_.Ask("cmd=get" + to + std::to_string(rank), deadline, &answer); !s.ok())
        return s;
      auto text = hex::Decode(answer["value"]);
      if (!text) {
        return {RM_ERR_UNAVAILABLE, "the launcher says of rank " + std::to_string(rank) + " '" +
                                        answer["value"] + "', which is no hexadecimal text"};
      }
      said->push_back(*std::move(text));
    }
    return {};
  }

  // MPI's leave closes the socket.
  void LeaveIsTaken() override { begun_ = false; }

 private:
  Line line_;
  const int rank_, size_;
  bool begun_ = false;
  std::string space_;  // key-value space of the processes that were started together
};

}  // namespace

Status OpenPmi1(const Launch& launch, std::unique_ptr<ProcessManager>* out) {
  if (OutOfStep::Has(launch.socket)) {
    return {RM_ERR_UNAVAILABLE,
            "the launcher of this process (PMI) has left a question of an earlier init without an "
            "answer, so nothing can be asked of it any more: start the processes again"};
  }
  auto pmi = std::make_unique<Pmi1>(launch.socket, launch.rank, launch.size);
  if (Status s = pmi->Begin(); !s.ok()) return s;
  *out = std::move(pmi);
  return {};
}

}  // namespace ringmaster::process_manager
