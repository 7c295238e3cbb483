#include "operator/page/slow_answer.h"

#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "common/sync/mutex.h"

namespace ringmaster::page {
namespace {

class Work {
 public:
  explicit Work(std::function<std::string(std::stop_token)> work) : work_(std::move(work)) {}

  // Implements http::Response::next. The work begins with the first call, so an answer that is
  // discarded before (only its head was requested, or there are too many) costs nothing.
  std::optional<std::string> Next() {
    if (!thread_.joinable()) thread_ = std::jthread([this](std::stop_token stop) { Run(stop); });
    sync::MutexLock lock(&mu_);
    if (!done_) return "";
    if (std::exchange(told_, true)) return std::nullopt;
    return text_.empty() ? std::nullopt : std::optional(std::move(text_));
  }

 private:
  void Run(const std::stop_token& stop) {
    std::string text = work_(stop);
    sync::MutexLock lock(&mu_);
    text_ = std::move(text);
    done_ = true;
  }

  const std::function<std::string(std::stop_token)> work_;
  sync::Mutex mu_;
  std::string text_ GUARDED_BY(mu_);
  bool done_ GUARDED_BY(mu_) = false;
  bool told_ GUARDED_BY(mu_) = false;
  std::jthread thread_;  // last member: its thread uses the others
};

}  // namespace

http::Response SlowAnswer(std::string content_type,
                          std::function<std::string(std::stop_token stop)> work) {
  auto at_work = std::make_shared<Work>(std::move(work));
  return {.content_type = std::move(content_type), .body = "", .next = [at_work] {
            return at_work->Next();
          }};
}

}  // namespace ringmaster::page
