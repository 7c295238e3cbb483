// httplib's server over TLS, with bounds that httplib doesn't have: how long a client may take over
// a request, how many bytes it may send before anybody has looked at its token, and how many
// connections may stand without one.
//
// Thread rule: as httplib's. A request is handled on the thread of its connection; Admit and
// EndAfter are for that thread.
#pragma once

#include <httplib.h>

#include <list>
#include <memory>

#include "common/sync/mutex.h"
#include "operator/local/server/https_limits.h"
#include "operator/local/server/tls_material.h"

namespace ringmaster::local {

class HttpsServer : public httplib::Server {
 public:
  HttpsServer(const TlsMaterial& tls, const HttpsLimits& limits);
  ~HttpsServer() override;

  bool is_valid() const override { return context_ != nullptr; }

  // To be called when it is bound: httplib lets five connections wait, and the kernel drops the
  // others.
  void DeepenBacklog() { ::listen(svr_sock_, SOMAXCONN); }

  // The client of this request is known: it may send a body, and its connection stays when there
  // are many. To be called before the body is read (set_pre_routing_handler).
  static void Admit(const httplib::Request& request);
  // There are so many connections that this one shall end with its first answer.
  static bool IsShort(const httplib::Request& request);
  // The connection ends with this answer, and what was sent with the request is never read.
  static void EndAfter(const httplib::Request& request);

  // Ends what connections wait for; those that send an answer may finish.
  void EndConnections();

 private:
  struct Connection;
  struct FreeContext {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };

  bool process_and_close_socket(socket_t socket) override;
  bool Converse(Connection* connection);
  void Add(Connection* connection);
  void Remove(Connection* connection);

  const HttpsLimits limits_;
  std::unique_ptr<SSL_CTX, FreeContext> context_;
  sync::Mutex mu_;
  std::list<Connection*> connections_ GUARDED_BY(mu_);  // the oldest first
  bool ending_ GUARDED_BY(mu_) = false;
};

}  // namespace ringmaster::local
