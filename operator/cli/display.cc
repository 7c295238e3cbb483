#include "operator/cli/display.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "common/plain_text/plain_text.h"
#include "common/sync/mutex.h"
#include "operator/cli/patient_output.h"
#include "operator/inspection/terminal_text.h"

namespace ringmaster::cli {
namespace {

constexpr char kEraseLine[] = "\r\033[K";
constexpr std::chrono::milliseconds kSameText{60'000};
// A starting job is held up by various short problems: those that pass soon need no line.
constexpr std::chrono::milliseconds kLasts{2'000};

class TerminalDisplay : public Display {
 public:
  TerminalDisplay(std::FILE* out, std::stop_token end) : out_(out), screen_(out, std::move(end)) {}
  ~TerminalDisplay() override { TerminalDisplay::Finish(); }

  void Line(const std::string& text) override {
    screen_.Write(kEraseLine + text + "\n" + progress_);
  }

  void Progress(const std::string& clock, const ProgressNews& news, TimePoint now) override {
    // A wrapped line can't be erased, so it is cut.
    std::string line = clock + news.text;
    line = plain_text::WithoutControls(std::move(line));
    const std::string cut = inspection::CutToColumns(line, static_cast<size_t>(width() - 1));
    ShowHeldUp(clock, news.held_up, cut, now);
    if (cut == progress_) return;
    progress_ = cut;
    screen_.Write(kEraseLine + progress_);
  }

  void Finish() override {
    if (progress_.empty()) return;
    progress_.clear();
    screen_.Write(kEraseLine);
  }

  int width() const override {
    winsize size{};
    if (ioctl(fileno(out_), TIOCGWINSZ, &size) != 0 || size.ws_col < 20) return 80;
    return size.ws_col;
  }

 private:
  struct Reason {
    HeldUp held_up;
    TimePoint since;
    bool shown = false;
  };

  // Shows each reason that `line` doesn't contain in full, once while it lasts.
  void ShowHeldUp(const std::string& clock, const std::vector<HeldUp>& held_up,
                  const std::string& line, TimePoint now) {
    std::vector<Reason> reasons;
    for (const HeldUp& one : held_up) {
      const auto known = std::find_if(reasons_.begin(), reasons_.end(),
                                      [&](const Reason& other) { return other.held_up == one; });
      reasons.push_back(known != reasons_.end() ? *known : Reason{one, now});
    }
    reasons_ = std::move(reasons);
    for (Reason& reason : reasons_) {
      const std::string why = plain_text::WithoutControls(reason.held_up.why);
      if (reason.shown || now - reason.since < kLasts || line.find(why) != std::string::npos)
        continue;
      reason.shown = true;
      Line(clock + reason.held_up.job + why);
    }
  }

  std::FILE* const out_;
  PatientOutput screen_;
  std::string progress_;
  std::vector<Reason> reasons_;  // those that last
};

class PlainDisplay : public Display {
 public:
  PlainDisplay(std::FILE* out, std::chrono::milliseconds period, std::stop_token end)
      : out_(out, std::move(end)), period_(period) {}

  void Line(const std::string& text) override { out_.Write(text + "\n"); }

  void Progress(const std::string& clock, const ProgressNews& news, TimePoint now) override {
    const std::string& text = news.text;
    if (last_ && now - *last_ < (text == shown_ ? kSameText : period_)) return;
    last_ = now;
    shown_ = text;
    Line(clock + text);
  }

  void Finish() override {}
  int width() const override { return 100; }

 private:
  PatientOutput out_;
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
  void Progress(const std::string& clock, const ProgressNews& news, TimePoint now) override {
    const sync::MutexLock lock(&mu_);
    display_->Progress(clock, news, now);
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

std::unique_ptr<Display> MakeTerminalDisplay(std::FILE* out, std::stop_token end) {
  return std::make_unique<TerminalDisplay>(out, std::move(end));
}

std::unique_ptr<Display> MakeSharedDisplay(std::unique_ptr<Display> display) {
  return std::make_unique<SharedDisplay>(std::move(display));
}

std::unique_ptr<Display> MakePlainDisplay(std::FILE* out, std::chrono::milliseconds period,
                                          std::stop_token end) {
  return std::make_unique<PlainDisplay>(out, period, std::move(end));
}

}  // namespace ringmaster::cli
