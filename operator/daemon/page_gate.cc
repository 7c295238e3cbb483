#include "operator/daemon/page_gate.h"

#include <algorithm>
#include <utility>

#include "common/ring_key/ring_key.h"

namespace ringmaster::daemon {
namespace {

using app::AccessReview;

http::Response RefusalOf(const AccessReview::Decision& decision) {
  return page::Refusal(decision.status, decision.why);
}

// Files that a browser needs before it is logged in.
bool IsOpen(const std::string& path) { return path == "/login.js" || path == "/page.css"; }

}  // namespace

page::Admission PageGate::Admit(const http::Request& request) {
  if (IsOpen(request.path)) return {};
  if (request.path == "/login") return LogIn(app::BearerToken(request));
  const std::string token = TokenOf(request);
  const auto decision = Decide(token);
  if (decision.status == 401 && request.path == "/") {
    auto form = page::FileAnswer("/login.html");
    form->status = 401;
    return {.instead = std::move(form)};
  }
  if (decision.status != 200) return {.instead = RefusalOf(decision)};
  return {.instead = std::nullopt,
          .headers = {},
          .holds = [this, token] { return Decide(token).status == 200; },
          .keeps_from_logs = [this, token](const std::string& ns) -> std::optional<http::Response> {
            const auto may = access_->MayReadLogs(token, ns);
            if (may.status == 200) return std::nullopt;
            return RefusalOf(may);
          }};
}

// The sessions of a token that the API server no longer knows are removed.
AccessReview::Decision PageGate::Decide(const std::string& token) {
  auto decision = access_->MayGet(token, kRight);
  if (decision.status == 401) {
    std::erase_if(sessions_, [&](const auto& session) { return session.second.token == token; });
  }
  return decision;
}

page::Admission PageGate::LogIn(const std::string& token) {
  const auto decision = Decide(token);
  if (decision.status != 200) return {.instead = RefusalOf(decision)};
  const auto now = now_();
  std::erase_if(sessions_, [now](const auto& session) { return session.second.until <= now; });
  if (sessions_.size() >= kMostSessions) {  // remove the oldest
    sessions_.erase(std::min_element(
        sessions_.begin(), sessions_.end(),
        [](const auto& a, const auto& b) { return a.second.until < b.second.until; }));
  }
  const std::string id = ring_key::MakeToken(ring_key::MakeRandom());
  sessions_[id] = {token, now + kSession};
  const auto seconds = std::chrono::seconds(kSession).count();
  return {.instead = http::Response{.body = "ok\n"},
          .headers = {{"Set-Cookie", CookieName() + "=" + id +
                                         "; HttpOnly; SameSite=Strict; Path=/" + "; Max-Age=" +
                                         std::to_string(seconds) + (over_tls_ ? "; Secure" : "")}}};
}

std::string PageGate::TokenOf(const http::Request& request) {
  if (std::string token = app::BearerToken(request); !token.empty()) return token;
  const auto session = sessions_.find(request.Cookie(CookieName()));
  if (session == sessions_.end() || session->second.until <= now_()) return "";
  return session->second.token;
}

// __Host- makes browsers accept the cookie only over TLS and for this host.
std::string PageGate::CookieName() const {
  return over_tls_ ? "__Host-ringmaster-page" : "ringmaster-page";
}

}  // namespace ringmaster::daemon
