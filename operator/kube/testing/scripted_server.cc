#include "operator/kube/testing/scripted_server.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

namespace ringmaster::kube::testing {
namespace {

void Must(bool ok, const char* what) {
  if (!ok) throw std::runtime_error(std::string("scripted server: ") + what);
}

std::shared_ptr<BIO> Memory(const std::string& text) {
  return {BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), BIO_free};
}

std::shared_ptr<X509> ReadCertificate(const std::string& pem) {
  return {PEM_read_bio_X509(Memory(pem).get(), nullptr, nullptr, nullptr), X509_free};
}

std::shared_ptr<ssl_ctx_st> MakeContext(const ScriptedServer::Options& options) {
  std::shared_ptr<ssl_ctx_st> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  auto cert = ReadCertificate(options.certificate.cert_pem);
  std::shared_ptr<EVP_PKEY> key(
      PEM_read_bio_PrivateKey(Memory(options.certificate.key_pem).get(), nullptr, nullptr, nullptr),
      EVP_PKEY_free);
  Must(SSL_CTX_use_certificate(context.get(), cert.get()) == 1, "certificate");
  Must(SSL_CTX_use_PrivateKey(context.get(), key.get()) == 1, "key");
  Must(SSL_CTX_set_max_proto_version(context.get(), options.highest_tls) == 1, "version of TLS");
  if (!options.chain_pem.empty())
    SSL_CTX_add1_chain_cert(context.get(), ReadCertificate(options.chain_pem).get());
  if (!options.client_ca.empty()) {
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()),
                        ReadCertificate(options.client_ca).get());
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
  return context;
}

std::string ClientName(SSL* ssl) {
  std::shared_ptr<X509> cert(SSL_get1_peer_certificate(ssl), X509_free);
  if (!cert) return "";
  char name[256] = "";
  X509_NAME_get_text_by_NID(X509_get_subject_name(cert.get()), NID_commonName, name, sizeof name);
  return name;
}

bool ReadUntil(SSL* ssl, std::string& buffer, const std::string& end) {
  char data[4096];
  while (buffer.find(end) == std::string::npos) {
    int n = SSL_read(ssl, data, sizeof data);
    if (n <= 0) return false;
    buffer.append(data, static_cast<size_t>(n));
  }
  return true;
}

bool ReadRequest(SSL* ssl, std::string& buffer, ServerRequest& request) {
  if (!ReadUntil(ssl, buffer, "\r\n\r\n")) return false;
  size_t end = buffer.find("\r\n\r\n");
  std::string head = buffer.substr(0, end + 2);
  buffer.erase(0, end + 4);
  size_t line_end = head.find("\r\n");
  size_t a = head.find(' '), b = head.find(' ', a + 1);
  request.method = head.substr(0, a);
  request.target = head.substr(a + 1, b - a - 1);
  for (size_t at = line_end + 2; at < head.size();) {
    size_t next = head.find("\r\n", at), colon = head.find(": ", at);
    std::string name = head.substr(at, colon - at);
    std::transform(name.begin(), name.end(), name.begin(), ::tolower);
    request.headers[name] = head.substr(colon + 2, next - colon - 2);
    at = next + 2;
  }
  size_t length = 0;
  if (auto it = request.headers.find("content-length"); it != request.headers.end())
    length = std::stoul(it->second);
  char data[4096];
  while (buffer.size() < length) {
    int n = SSL_read(ssl, data, sizeof data);
    if (n <= 0) return false;
    buffer.append(data, static_cast<size_t>(n));
  }
  request.body = buffer.substr(0, length);
  buffer.erase(0, length);
  return true;
}

}  // namespace

void Exchange::Raw(const std::string& bytes) {
  if (!gone_) gone_ = SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size())) <= 0;
}

void Exchange::Answer(int status, const std::string& body,
                      const std::vector<std::string>& headers) {
  std::string text = "HTTP/1.1 " + std::to_string(status) + " x\r\nContent-Type: application/json" +
                     "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  for (const std::string& header : headers) text += header + "\r\n";
  keep_ = true;
  Raw(text + "\r\n" + body);
}

void Exchange::Begin(int status) {
  Raw("HTTP/1.1 " + std::to_string(status) +
      " x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n");
}

void Exchange::Chunk(const std::string& text) {
  char size[32];
  std::snprintf(size, sizeof size, "%zx\r\n", text.size());
  Raw(size + text + "\r\n");
}

void Exchange::End() {
  keep_ = true;
  Raw("0\r\n\r\n");
}

bool Exchange::WaitForClient(int milliseconds) {
  pollfd p{SSL_get_fd(ssl_), POLLRDHUP, 0};
  if (poll(&p, 1, milliseconds) > 0) gone_ = true;
  return gone_;
}

ScriptedServer::ScriptedServer(const Options& options, Handler handler)
    : handler_(std::move(handler)), context_(MakeContext(options)) {
  signal(SIGPIPE, SIG_IGN);
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  Must(bind(listener_, generic, sizeof address) == 0 && listen(listener_, 64) == 0, "listen");
  socklen_t size = sizeof address;
  getsockname(listener_, generic, &size);
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Listen(); });
}

ScriptedServer::~ScriptedServer() { Stop(); }

void ScriptedServer::Stop() {
  if (!acceptor_.joinable()) return;
  std::vector<std::thread> threads;
  {
    std::lock_guard lock(mu_);
    stopping_ = true;
    for (int fd : open_) shutdown(fd, SHUT_RDWR);
  }
  shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  close(listener_);
  {
    std::lock_guard lock(mu_);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

int ScriptedServer::connections() const {
  std::lock_guard lock(mu_);
  return connections_;
}

int ScriptedServer::requests() const {
  std::lock_guard lock(mu_);
  return requests_;
}

void ScriptedServer::CloseConnections() {
  std::unique_lock lock(mu_);
  for (int fd : open_) shutdown(fd, SHUT_RD);  // ends the reading thread, with TLS's close_notify
  closed_.wait_for(lock, std::chrono::seconds(10), [this] { return open_.empty(); });
}

void ScriptedServer::Listen() {
  while (true) {
    int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    std::lock_guard lock(mu_);
    if (stopping_) {
      close(fd);
      return;
    }
    open_.insert(fd);
    threads_.emplace_back([this, fd, number = ++connections_] { Serve(fd, number); });
  }
}

void ScriptedServer::Serve(int fd, int connection) {
  {
    std::shared_ptr<SSL> ssl(SSL_new(context_.get()), SSL_free);
    SSL_set_fd(ssl.get(), fd);
    if (SSL_accept(ssl.get()) == 1) {
      Talk(ssl.get(), connection);
      SSL_shutdown(ssl.get());
    }
    ERR_clear_error();
  }
  std::lock_guard lock(mu_);
  open_.erase(fd);
  close(fd);
  closed_.notify_all();
}

void ScriptedServer::Talk(SSL* ssl, int connection) {
  std::string buffer;
  while (true) {
    ServerRequest request;
    if (!ReadRequest(ssl, buffer, request)) return;
    request.connection = connection;
    request.client_name = ClientName(ssl);
    {
      std::lock_guard lock(mu_);
      request.number = ++requests_;
    }
    Exchange exchange(ssl);
    handler_(request, exchange);
    if (!exchange.keep_ || exchange.gone_) return;
  }
}

}  // namespace ringmaster::kube::testing
