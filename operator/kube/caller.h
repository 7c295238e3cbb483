// One call to the API server from beginning to end: the client's own rate limit, the credential,
// what is repeated and what is not, the deadline, the observer.
//
// Repeated while the deadline allows: what the server asks to repeat (429, and 5xx with
// Retry-After); once, with a new credential, after a 401; and reads (GET) whose connection broke or
// that were answered with 5xx, a few times. A write is never sent twice on a guess.
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

// Which call it is, in the words of error messages and of the observer. `resource` must live as
// long.
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

  // The JSON object of a 2xx answer. request.deadline is set here.
  Result<Json> Call(const CallContext& context, HttpRequest request);
  // Hands on the body of a 200 as it comes.
  Result<void> Stream(const CallContext& context, const HttpRequest& request,
                      const std::function<bool(std::string_view)>& on_data, std::stop_token stop);

 private:
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;

  // Waits for the rate limit; how long that took.
  Result<Seconds> Admit(const CallContext& context, Clock::time_point deadline,
                        std::stop_token stop = {});
  // False when `stop` or the client's own stop came first.
  bool Sleep(Clock::duration duration, std::stop_token stop = {});
  void NotifyObserver(const CallContext& context, int code, Clock::time_point began,
                      Clock::time_point ended, Seconds throttled);

  const ClientConfig config_;
  Credentials credentials_;
  RateLimiter limiter_;
  const std::unique_ptr<HttpConnections> http_;
};

}  // namespace ringmaster::kube
