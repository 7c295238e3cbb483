#include "collectives/process_manager/pmix.h"

#include <cstring>
#include <memory>
#include <optional>

#include "collectives/process_manager/pmix_abi.h"
#include "collectives/shared_library/shared_library.h"
#include "common/sync/mutex.h"

namespace ringmaster::process_manager {
namespace {

constexpr const char* kNames[] = {"libpmix.so.2"};
constexpr char kPrefix[] = "ringmaster.";

// The answer to one question to PMIx. The library answers on a thread of its own, maybe after the
// asking thread has given up, so both threads hold this object.
class Answer {
 public:
  struct Content {
    std::string text;
    uint32_t number = 0;
  };

  // The key that is asked for, and the process whose value it is. They are kept here because the
  // library may read them until it answers.
  std::string key;
  pmix::Process of = {};

  // The pointer that the library passes to Take(), once, with its answer.
  static void* Ticket(const std::shared_ptr<Answer>& answer) {
    return new std::shared_ptr<Answer>(answer);
  }
  static void Take(void* ticket, pmix::Status status, const pmix::Value* value) {
    const std::unique_ptr<std::shared_ptr<Answer>> owned(
        static_cast<std::shared_ptr<Answer>*>(ticket));
    Answer& answer = **owned;
    sync::MutexLock lock(&answer.mu_);
    answer.status_ = status;
    if (value != nullptr && value->type == pmix::kString && value->string != nullptr)
      answer.content_.text = value->string;
    if (value != nullptr && value->type == pmix::kUint32) answer.content_.number = value->uint32;
    answer.came_.NotifyAll();
  }

  // Waits for the answer. No value: the deadline has passed.
  std::optional<pmix::Status> Await(Clock::time_point deadline, Content* content) {
    sync::MutexLock lock(&mu_);
    while (!status_) {
      if (!came_.WaitUntil(&mu_, deadline) && !status_) return std::nullopt;
    }
    if (content != nullptr) *content = content_;
    return status_;
  }

 private:
  sync::Mutex mu_;
  sync::CondVar came_;
  std::optional<pmix::Status> status_ GUARDED_BY(mu_);
  Content content_ GUARDED_BY(mu_);
};

extern "C" void OnDone(pmix::Status status, void* ticket) { Answer::Take(ticket, status, nullptr); }
extern "C" void OnFound(pmix::Status status, pmix::Value* value, void* ticket) {
  Answer::Take(ticket, status, value);
}

class Pmix : public ProcessManager {
 public:
  ~Pmix() override {
    if (begun_) finalize_(nullptr, 0);
  }

  Status Begin() {
    SharedLibrary library;
    if (Status s = SharedLibrary::Open(kNames, &library); !s.ok()) {
      return {s.code(), "this process was started by a launcher that speaks PMIx, and " +
                            s.message() +
                            "; install PMIx's library (libpmix2), or name its directory in "
                            "LD_LIBRARY_PATH"};
    }
    library.Resolve("PMIx_Init", &init_);
    library.Resolve("PMIx_Finalize", &finalize_);
    library.Resolve("PMIx_Put", &put_);
    library.Resolve("PMIx_Commit", &commit_);
    library.Resolve("PMIx_Fence_nb", &fence_);
    library.Resolve("PMIx_Get_nb", &get_);
    library.Resolve("PMIx_Error_string", &text_);
    if (Status s = library.CheckResolved(); !s.ok()) return s;
    if (const pmix::Status s = init_(&self_, nullptr, 0); s != pmix::kSuccess)
      return Failed("its launcher can't be reached", s);
    begun_ = true;
    return AskSize();
  }

  int rank() const override { return static_cast<int>(self_.rank); }
  int size() const override { return size_; }
  std::string job() const override { return self_.job; }

  Status Exchange(const std::string& name, const std::string& mine, Clock::time_point deadline,
                  std::vector<std::string>* said) override {
    const std::string key = kPrefix + name;
    std::string text = mine;
    pmix::Value value = {pmix::kString, {text.data()}};
    if (const pmix::Status s = put_(pmix::kToAll, key.c_str(), &value); s != pmix::kSuccess)
      return Failed("nothing can be said to the others", s);
    if (const pmix::Status s = commit_(); s != pmix::kSuccess)
      return Failed("nothing can be said to the others", s);
    const auto together = [this](void* ticket) {
      return fence_(nullptr, 0, nullptr, 0, OnDone, ticket);
    };
    if (Status s = Ask(std::make_shared<Answer>(), together, deadline,
                       "the other processes have not called init", nullptr);
        !s.ok())
      return s;
    said->clear();
    for (int rank = 0; rank < size_; ++rank) {
      Answer::Content answer;
      if (Status s = Get(static_cast<uint32_t>(rank), key, deadline, &answer); !s.ok()) return s;
      said->push_back(answer.text);
    }
    return {};
  }

 private:
  Status AskSize() {
    Answer::Content answer;
    const auto soon = Clock::now() + std::chrono::seconds(10);  // the launcher on this machine
    if (Status s = Get(pmix::kAllRanks, pmix::kJobSize, soon, &answer); !s.ok()) return s;
    size_ = static_cast<int>(answer.number);
    if (size_ > 0 && rank() < size_) return {};
    return {RM_ERR_UNAVAILABLE, "the launcher calls this process rank " + std::to_string(rank()) +
                                    " of " + std::to_string(size_)};
  }

  Status Get(uint32_t rank, const std::string& key, Clock::time_point deadline,
             Answer::Content* content) {
    const auto answer = std::make_shared<Answer>();
    answer->key = key;
    answer->of = self_;
    answer->of.rank = rank;
    const auto get = [this, &answer](void* ticket) {
      return get_(&answer->of, answer->key.c_str(), nullptr, 0, OnFound, ticket);
    };
    return Ask(answer, get, deadline, "rank " + std::to_string(rank) + " has not said its " + key,
               content);
  }

  // Asks the library a question. `question` passes on the ticket for the answer; `otherwise` says
  // what is wrong if no answer comes.
  template <typename Question>
  Status Ask(const std::shared_ptr<Answer>& answer, const Question& question,
             Clock::time_point deadline, const std::string& otherwise, Answer::Content* content) {
    void* const ticket = Answer::Ticket(answer);
    const pmix::Status asked = question(ticket);
    // If the call doesn't succeed, its result is the answer, and the library doesn't use the
    // ticket.
    if (asked != pmix::kSuccess) Answer::Take(ticket, asked, nullptr);
    const auto status = answer->Await(deadline, content);
    if (!status) return {RM_ERR_TIMEOUT, otherwise + " before the deadline"};
    if (*status == pmix::kSuccess || *status == pmix::kDoneAtOnce) return {};
    return Failed(otherwise, *status);
  }

  Status Failed(const std::string& what, pmix::Status status) const {
    return {RM_ERR_UNAVAILABLE, what + ": PMIx says " + text_(status)};
  }

  pmix::Init* init_ = nullptr;
  pmix::Finalize* finalize_ = nullptr;
  pmix::Put* put_ = nullptr;
  pmix::Commit* commit_ = nullptr;
  pmix::Fence* fence_ = nullptr;
  pmix::Get* get_ = nullptr;
  pmix::Text* text_ = nullptr;
  pmix::Process self_ = {};
  bool begun_ = false;
  int size_ = 0;
};

}  // namespace

Status OpenPmix(std::unique_ptr<ProcessManager>* out) {
  auto pmix = std::make_unique<Pmix>();
  if (Status s = pmix->Begin(); !s.ok()) return s;
  *out = std::move(pmix);
  return {};
}

}  // namespace ringmaster::process_manager
