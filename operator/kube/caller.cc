#include "operator/kube/caller.h"

#include <fmt/format.h>

#include <condition_variable>
#include <mutex>

namespace ringmaster::kube {
namespace {

using std::chrono::milliseconds;

constexpr int kReadTries = 3;
constexpr milliseconds kFirstPause{100};
constexpr milliseconds kShortestWait{100};

Error Prefixed(const Asking& asking, Error error) {
  error.message = asking.text + ": " + error.message;
  return error;
}

Error Stopped(const Asking& asking) { return Unavailable(asking.text, "this client is stopping"); }

Json Parse(const std::string& body) {
  Json json = Json::parse(body, nullptr, false);
  return json.is_discarded() ? Json(body) : json;
}

Error ErrorOf(const Asking& asking, const HttpResponse& response) {
  Error error = ErrorFromStatus(asking.text, response.status, Parse(response.body));
  if (response.retry_after.count() >= 0) error.retry_after = response.retry_after;
  return error;
}

// How long to wait before the same request may be sent again; nullopt: not at all.
std::optional<milliseconds> PauseBeforeRepeat(const HttpRequest& request,
                                              const HttpResponse& response, const Error& error,
                                              WhenBusy busy, int tries) {
  bool told_when = response.retry_after.count() >= 0;
  if (response.status == 429) {
    if (busy == WhenBusy::kReport) return std::nullopt;
    milliseconds pause =
        told_when || error.retry_after.count() > 0 ? error.retry_after : milliseconds(1000);
    return std::max(pause, kShortestWait);
  }
  if (response.status < 500) return std::nullopt;
  if (told_when) return std::max<milliseconds>(response.retry_after, kShortestWait);
  if (request.method == "GET" && tries < kReadTries) return kFirstPause * (1 << (tries - 1));
  return std::nullopt;
}

}  // namespace

Caller::Caller(const ClientConfig& config, std::unique_ptr<HttpConnections> http)
    : config_(config),
      credentials_(config),
      limiter_(config.qps, config.burst),
      http_(std::move(http)) {}

bool Caller::Sleep(Clock::duration duration, std::stop_token stop) {
  std::mutex mu;
  std::condition_variable_any wake;
  bool stopped = false;
  auto end = [&] {
    std::lock_guard lock(mu);
    stopped = true;
    wake.notify_all();
  };
  std::stop_callback by_caller(stop, end), by_client(config_.stop, end);
  std::unique_lock lock(mu);
  return !wake.wait_for(lock, duration, [&] { return stopped; });
}

Result<Caller::Seconds> Caller::Admit(const Asking& asking, Clock::time_point deadline,
                                      std::stop_token stop) {
  const auto wait = limiter_.Reserve(Clock::now(), deadline);
  if (!wait) {
    return tl::unexpected(Unavailable(
        asking.text, fmt::format("the client's own limit of {} calls a second leaves no time "
                                 "before the deadline",
                                 config_.qps)));
  }
  if (wait->count() == 0) return Seconds(0);
  if (!Sleep(*wait, stop)) return tl::unexpected(Stopped(asking));
  return Seconds(*wait);
}

void Caller::Tell(const Asking& asking, int code, Clock::time_point began, Clock::time_point ended,
                  Seconds throttled) {
  if (!config_.on_call) return;
  config_.on_call(
      {asking.verb, asking.resource, asking.subresource, code, ended - began, throttled});
}

Result<Json> Caller::Call(const Asking& asking, HttpRequest request, WhenBusy busy) {
  const auto deadline = Clock::now() + config_.deadline;
  bool renewed = false;
  for (int tries = 1;; ++tries) {
    if (config_.stop.stop_requested()) return tl::unexpected(Stopped(asking));
    auto throttled = Admit(asking, deadline);
    if (!throttled) return tl::unexpected(throttled.error());
    auto credential = credentials_.Get(deadline);
    if (!credential) return tl::unexpected(Prefixed(asking, credential.error()));
    auto began = Clock::now();
    request.deadline = std::chrono::duration_cast<milliseconds>(deadline - began);
    if (request.deadline.count() <= 0)
      return tl::unexpected(Unavailable(asking.text, "no answer before the deadline"));
    auto response = http_->Send(request, *credential);
    Tell(asking, response ? response->status : 0, began, Clock::now(), *throttled);

    if (response && config_.on_warning) {
      for (const std::string& text : response->warnings) config_.on_warning(asking.text, text);
    }
    std::optional<milliseconds> pause;
    Error error;
    if (!response) {
      error = Prefixed(asking, response.error());
      bool again = request.method == "GET" && error.code == ErrorCode::kUnavailable;
      if (again && tries < kReadTries) pause = kFirstPause * (1 << (tries - 1));
    } else if (response->status == 401) {
      error = ErrorOf(asking, *response);
      if (!renewed && credentials_.Expire(*credential)) pause = milliseconds(0);
      renewed = true;
    } else if (response->status >= 200 && response->status < 300) {
      Json body = Parse(response->body);
      if (body.is_object()) return body;
      return tl::unexpected(Internal(asking.text, "the answer is not a JSON object"));
    } else {
      error = ErrorOf(asking, *response);
      pause = PauseBeforeRepeat(request, *response, error, busy, tries);
    }
    if (!pause || Clock::now() + *pause >= deadline) return tl::unexpected(error);
    if (!Sleep(*pause)) return tl::unexpected(Stopped(asking));
  }
}

Result<void> Caller::Stream(const Asking& asking, const HttpRequest& request,
                            const std::function<bool(std::string_view)>& on_data,
                            std::stop_token stop) {
  const auto admitted_by = Clock::now() + config_.deadline;
  auto throttled = Admit(asking, admitted_by, stop);
  if (!throttled) {
    if (stop.stop_requested()) return {};
    return tl::unexpected(throttled.error());
  }
  for (bool renewed = false;; renewed = true) {
    auto credential = credentials_.Get(admitted_by);
    if (!credential) return tl::unexpected(Prefixed(asking, credential.error()));
    auto began = Clock::now();
    bool told = false;
    auto tell = [&](int code) {
      if (!told) Tell(asking, code, began, Clock::now(), *throttled);
      told = true;
    };
    auto response = http_->Stream(request, *credential, tell, on_data, stop);
    tell(response ? response->status : 0);
    if (!response) return tl::unexpected(Prefixed(asking, response.error()));
    if (response->status == 200) return {};
    bool again = response->status == 401 && !renewed && credentials_.Expire(*credential);
    if (!again) return tl::unexpected(ErrorOf(asking, *response));
  }
}

}  // namespace ringmaster::kube
