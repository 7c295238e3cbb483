#include "operator/kube/caller.h"

#include <fmt/format.h>

#include "common/sync/pause.h"
#include "operator/kube/parse_object.h"

namespace ringmaster::kube {
namespace {

using std::chrono::milliseconds;

constexpr int kReadTries = 3;
constexpr milliseconds kFirstPause{100};
constexpr milliseconds kShortestWait{100};
// Lists may have many objects; http_connection.cc has limited the bytes.
constexpr fields::ParseLimits kAnswerLimits{.bytes = 1u << 30, .depth = 128};

Error Prefixed(const CallContext& context, Error error) {
  error.message = context.text + ": " + error.message;
  return error;
}

Error Stopped(const CallContext& context) {
  return Unavailable(context.text, "this client is stopping");
}

Json Parse(const std::string& body, Unread unread = {}) {
  Json json = ParseObjectOrDiscard(body, kAnswerLimits, unread);
  return json.is_discarded() ? Json(body) : json;
}

Error ErrorOf(const CallContext& context, const HttpResponse& response) {
  Error error = ErrorFromStatus(context.text, response.status, Parse(response.body));
  if (response.retry_after.count() >= 0) error.retry_after = response.retry_after;
  return error;
}

// How long to wait before the request is sent again; nullopt: it must not be repeated.
std::optional<milliseconds> PauseBeforeRepeat(const HttpRequest& request,
                                              const HttpResponse& response, const Error& error,
                                              int tries) {
  bool told_when = response.retry_after.count() >= 0;
  if (response.status == 429) {
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
  std::stop_source either;
  auto end = [&] { either.request_stop(); };
  std::stop_callback by_caller(stop, end), by_client(config_.stop, end);
  sync::Pause(either.get_token(), duration);
  return !either.stop_requested();
}

Result<Caller::Seconds> Caller::Admit(const CallContext& context, Clock::time_point deadline,
                                      std::stop_token stop) {
  const auto wait = limiter_.Reserve(Clock::now(), deadline);
  if (!wait) {
    return tl::unexpected(Unavailable(
        context.text, fmt::format("the client's own limit of {} calls a second leaves no time "
                                  "before the deadline",
                                  config_.qps)));
  }
  if (wait->count() == 0) return Seconds(0);
  if (!Sleep(*wait, stop)) return tl::unexpected(Stopped(context));
  return Seconds(*wait);
}

void Caller::NotifyObserver(const CallContext& context, int code, Clock::time_point began,
                            Clock::time_point ended, Seconds throttled) {
  if (!config_.on_call) return;
  config_.on_call(
      {context.verb, context.resource, context.subresource, code, ended - began, throttled});
}

Result<Json> Caller::Call(const CallContext& context, HttpRequest request, Unread unread) {
  const auto deadline = Clock::now() + config_.deadline;
  bool renewed = false;
  for (int tries = 1;; ++tries) {
    if (config_.stop.stop_requested()) return tl::unexpected(Stopped(context));
    auto throttled = Admit(context, deadline);
    if (!throttled) return tl::unexpected(throttled.error());
    auto credential = credentials_.Get(deadline);
    if (!credential) return tl::unexpected(Prefixed(context, credential.error()));
    auto began = Clock::now();
    request.deadline = std::chrono::duration_cast<milliseconds>(deadline - began);
    if (request.deadline.count() <= 0)
      return tl::unexpected(Unavailable(context.text, "no answer before the deadline"));
    auto response = http_->Send(request, *credential);
    NotifyObserver(context, response ? response->status : 0, began, Clock::now(), *throttled);
    if (response && response->queued_fairly && config_.server_may_lift_limit) limiter_.Lift();

    if (response && config_.on_warning) {
      for (const std::string& text : response->warnings) config_.on_warning(context.text, text);
    }
    std::optional<milliseconds> pause;
    Error error;
    if (!response) {
      error = Prefixed(context, response.error());
      bool again = request.method == "GET" && error.code == ErrorCode::kUnavailable;
      if (again && tries < kReadTries) pause = kFirstPause * (1 << (tries - 1));
    } else if (response->status == 401) {
      error = ErrorOf(context, *response);
      if (!renewed && credentials_.Expire(*credential, deadline)) pause = milliseconds(0);
      renewed = true;
    } else if (response->status >= 200 && response->status < 300) {
      Json body = Parse(response->body, unread);
      if (body.is_object()) return body;
      return tl::unexpected(Internal(context.text, "the answer is not a JSON object"));
    } else {
      error = ErrorOf(context, *response);
      pause = PauseBeforeRepeat(request, *response, error, tries);
    }
    if (!pause || Clock::now() + *pause >= deadline) return tl::unexpected(error);
    if (!Sleep(*pause)) return tl::unexpected(Stopped(context));
  }
}

Result<void> Caller::Stream(const CallContext& context, const HttpRequest& request,
                            const std::function<bool(std::string_view)>& on_data,
                            std::stop_token stop) {
  const auto admitted_by = Clock::now() + config_.deadline;
  auto throttled = Admit(context, admitted_by, stop);
  if (!throttled) {
    if (stop.stop_requested()) return {};
    return tl::unexpected(throttled.error());
  }
  for (bool renewed = false;; renewed = true) {
    auto credential = credentials_.Get(admitted_by);
    if (!credential) return tl::unexpected(Prefixed(context, credential.error()));
    auto began = Clock::now();
    bool notified = false;
    auto notify = [&](int code) {
      if (!notified) NotifyObserver(context, code, began, Clock::now(), *throttled);
      notified = true;
    };
    auto response = http_->Stream(request, *credential, notify, on_data, stop);
    notify(response ? response->status : 0);
    if (!response) return tl::unexpected(Prefixed(context, response.error()));
    if (response->status == 200) return {};
    Error error = ErrorOf(context, *response);
    // What comes through the proxy without the server's reason, a pod has answered.
    const bool of_server = context.subresource != "proxy" || error.reason == "Unauthorized";
    bool again = response->status == 401 && !renewed && of_server &&
                 credentials_.Expire(*credential, admitted_by);
    if (!again) return tl::unexpected(std::move(error));
  }
}

}  // namespace ringmaster::kube
