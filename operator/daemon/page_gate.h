// Decides who may see the operator's page. A request carries a bearer token, as one to the API
// server does; a browser shows its token once, at /login, and gets a session cookie for it. The
// cookie opens the page and nothing else: the token itself stays here, and the API server checks it
// again each minute.
//
// Thread rule: one thread. It blocks for up to two calls of the API.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "operator/app/access_review.h"
#include "operator/page/page_answers.h"

namespace ringmaster::daemon {

class PageGate {
 public:
  using Clock = app::AccessReview::Clock;
  static constexpr char kRight[] = "/page";  // `get` of this path is the right to see the page
  static constexpr std::size_t kMostSessions = 256;
  static constexpr std::chrono::hours kSession{12};

  // `over_tls`: browsers send the cookie only over TLS.
  PageGate(std::unique_ptr<app::AccessReview> access, bool over_tls,
           std::function<Clock::time_point()> now = Clock::now)
      : access_(std::move(access)), over_tls_(over_tls), now_(std::move(now)) {}

  page::Admission Admit(const http::Request& request);

 private:
  struct Session {
    std::string token;
    Clock::time_point until;
  };
  // Whether the token's user may see the page.
  app::AccessReview::Decision Decide(const std::string& token);
  page::Admission LogIn(const std::string& token);
  // Empty if the request has none.
  std::string TokenOf(const http::Request& request);
  std::string CookieName() const;

  const std::unique_ptr<app::AccessReview> access_;
  const bool over_tls_;
  const std::function<Clock::time_point()> now_;
  std::map<std::string, Session> sessions_;  // by the value of the cookie
};

}  // namespace ringmaster::daemon
