// An HTTPS server that behaves as a test tells it: it answers, stalls, drips, closes connections,
// or asks for client certificates.
//
// Thread rule: Start, Stop and the destructor from one thread; the handler runs on the thread of
// each connection; the counters are safe from any thread.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "operator/kube/testing/certificates.h"

struct ssl_st;
struct ssl_ctx_st;

namespace ringmaster::kube::testing {

struct ServerRequest {
  std::string method;
  std::string target;                          // path and query
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  std::string client_name;  // common name of the client's certificate
  int connection = 0;       // 1, 2, ... in the order of arrival
  int number = 0;           // number of the request among all
};

// The answer to one request. If none of the methods is called, the connection is closed.
class Exchange {
 public:
  // A whole answer; the connection stays open for the next request.
  void Answer(int status, const std::string& body, const std::vector<std::string>& headers = {});
  void Begin(int status);                // headers of a chunked answer
  void Chunk(const std::string& text);   // a chunk of it
  void End();                            // of a chunked answer
  void Raw(const std::string& bytes);    // sends the bytes as they are
  bool WaitForClient(int milliseconds);  // true when it has closed the connection
  void CloseAfterwards() { keep_ = false; }
  bool gone() const { return gone_; }

 private:
  friend class ScriptedServer;
  explicit Exchange(ssl_st* ssl) : ssl_(ssl) {}
  ssl_st* ssl_;
  bool keep_ = false;
  bool gone_ = false;
};

class ScriptedServer {
 public:
  using Handler = std::function<void(const ServerRequest&, Exchange&)>;
  struct Options {
    KeyPair certificate;
    std::string chain_pem;  // sent after the certificate
    std::string client_ca;  // if set, a client certificate signed by it is required
    int highest_tls = 0;    // such as TLS1_1_VERSION; 0: the newest
  };

  ScriptedServer(const Options& options, Handler handler);
  ~ScriptedServer();
  void Stop();
  int port() const { return port_; }
  int connections() const;
  int requests() const;
  // Closes every open connection, as a server does with idle ones, and waits until they are closed.
  void CloseConnections();

 private:
  void Listen();
  void Serve(int fd, int connection);
  void Talk(ssl_st* ssl, int connection);

  const Handler handler_;
  std::shared_ptr<ssl_ctx_st> context_;
  int listener_ = -1;
  int port_ = 0;
  std::thread acceptor_;

  mutable std::mutex mu_;
  std::condition_variable closed_;
  bool stopping_ = false;             // guarded by mu_
  int connections_ = 0;               // guarded by mu_
  int requests_ = 0;                  // guarded by mu_
  std::set<int> open_;                // guarded by mu_
  std::vector<std::thread> threads_;  // guarded by mu_
};

}  // namespace ringmaster::kube::testing
