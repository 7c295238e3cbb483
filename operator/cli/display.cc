#include "operator/cli/display.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "common/sync/mutex.h"

namespace ringmaster::cli {
namespace {

constexpr char kEraseLine[] = "\r\033[K";
constexpr std::chrono::milliseconds kSameText{60'000};

class TerminalDisplay : public Display {
 public:
  explicit TerminalDisplay(std::FILE* out) : out_(out) {}
  ~TerminalDisplay() override { TerminalDisplay::Finish(); }

  void Line(const std::string& text) override {
    std::fprintf(out_, "%s%s\n%s", kEraseLine, text.c_str(), progress_.c_str());
    std::fflush(out_);
  }

  void Progress(const std::string& clock, const std::string& text, TimePoint) override {
    // A line that wraps can't be erased: cut it. All text is ASCII.
    std::string cut = (clock + text).substr(0, static_cast<size_t>(width() - 1));
    if (cut == progress_) return;
    progress_ = cut;
    std::fprintf(out_, "%s%s", kEraseLine, progress_.c_str());
    std::fflush(out_);
  }

  void Finish() override {
    if (progress_.empty()) return;
    progress_.clear();
    std::fputs(kEraseLine, out_);
    std::fflush(out_);
  }

  int width() const override {
    winsize size{};
    if (ioctl(fileno(out_), TIOCGWINSZ, &size) != 0 || size.ws_col < 20) return 80;
    return size.ws_col;
  }

 private:
  std::FILE* const out_;
  std::string progress_;
};

class PlainDisplay : public Display {
 public:
  PlainDisplay(std::FILE* out, std::chrono::milliseconds period) : out_(out), period_(period) {}

  void Line(const std::string& text) override {
    std::fprintf(out_, "%s\n", text.c_str());
    std::fflush(out_);
  }

  void Progress(const std::string& clock, const std::string& text, TimePoint now) override {
    if (last_ && now - *last_ < (text == shown_ ? kSameText : period_)) return;
    last_ = now;
    shown_ = text;
    Line(clock + text);
  }

  void Finish() override {}
  int width() const override { return 100; }

 private:
  std::FILE* const out_;
  const std::chrono::milliseconds period_;
  std::optional<TimePoint> last_;
  std::string shown_;
};

class SharedDisplay : public Display {
 public:
  explicit SharedDisplay(std::unique_ptr<Display> display) : display_(std::move(display)) {}

  void Line(const std::string& text) override {
    const sync::MutexLock lock(&mu_);
    display_->Line(text);
  }
  void Progress(const std::string& clock, const std::string& text, TimePoint now) override {
    const sync::MutexLock lock(&mu_);
    display_->Progress(clock, text, now);
  }
  void Finish() override {
    const sync::MutexLock lock(&mu_);
    display_->Finish();
  }
  int width() const override {
    const sync::MutexLock lock(&mu_);
    return display_->width();
  }

 private:
  mutable sync::Mutex mu_;
  const std::unique_ptr<Display> display_ GUARDED_BY(mu_);
};

}  // namespace

std::unique_ptr<Display> MakeTerminalDisplay(std::FILE* out) {
  return std::make_unique<TerminalDisplay>(out);
}

std::unique_ptr<Display> MakeSharedDisplay(std::unique_ptr<Display> display) {
  return std::make_unique<SharedDisplay>(std::move(display));
}

std::unique_ptr<Display> MakePlainDisplay(std::FILE* out, std::chrono::milliseconds period) {
  return std::make_unique<PlainDisplay>(out, period);
}

}  // namespace ringmaster::cli
