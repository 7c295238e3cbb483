// Makes one call to the API server from beginning to end: rate limit, credential, repetitions,
// deadline, observer.
//
// A call is repeated while the deadline allows: if the server asks for that (429, and 5xx with
// Retry-After); once, with a new credential, after a 401; and a few times if a read (GET) lost its
// connection or was answered with 5xx. A write is never repeated when its result is unknown.
//
// Thread rule: safe from any thread.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "operator/kube/credentials.h"
#include "operator/kube/errors.h"
#include "operator/kube/http_connection.h"
#include "operator/kube/rate_limiter.h"

namespace ringmaster::kube {

// Names a call for error messages and for the observer. `resource` must outlive it.
struct CallContext {
  CallContext(const char* verb_, const Resource& resource_, const std::string& ns,
              const std::string& name, const std::string& subresource_ = "")
      : verb(verb_),
        resource(resource_),
        subresource(subresource_),
        text(Asked(verb_, resource_, ns, name, subresource_)) {}

  const char* verb;
  const Resource& resource;
  std::string subresource;
  std::string text;
};

class Caller {
 public:
  Caller(const ClientConfig& config, std::unique_ptr<HttpConnections> http);

  // Returns the JSON object of a 2xx answer. Sets request.deadline.
  // `unread`: what may be left out of the answer.
  Result<Json> Call(const CallContext& context, HttpRequest request, Unread unread = {});
  // Passes on the body of a 200 answer as it arrives.
  Result<void> Stream(const CallContext& context, const HttpRequest& request,
                      const std::function<bool(std::string_view)>& on_data, std::stop_token stop);

 private:
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;

  // Waits for the rate limit and returns how long that took.
  Result<Seconds> Admit(const CallContext& context, Clock::time_point deadline,
                        std::stop_token stop = {});
  // Returns false if `stop` or the client's own stop came first.
  bool Sleep(Clock::duration duration, std::stop_token stop = {});
  void NotifyObserver(const CallContext& context, int code, Clock::time_point began,
                      Clock::time_point ended, Seconds throttled);

  const ClientConfig config_;
  Credentials credentials_;
  RateLimiter limiter_;
  const std::unique_ptr<HttpConnections> http_;
};

}  // namespace ringmaster::kube
