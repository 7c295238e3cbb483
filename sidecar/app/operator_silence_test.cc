// An operator whose node is cut off: its connections stay open, and nothing comes through them.
#include <gtest/gtest.h>

#include <array>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/write.hpp>
#include <filesystem>
#include <memory>

#include "sidecar/app/testing/fake_operator.h"
#include "sidecar/rendezvous/address.h"
#include "sidecar/rendezvous/operator_client.h"

namespace ringmaster::app {
namespace {

using asio::ip::tcp;
using asio::local::stream_protocol;

// Hands bytes on between a TCP port and a server's socket, until the network is cut for all that
// is connected. New connections go through.
class Network {
 public:
  Network(asio::io_context* loop, std::string server)
      : acceptor_(*loop), server_(std::move(server)) {
    std::string error;
    EXPECT_TRUE(rendezvous::ListenOn(&acceptor_, "127.0.0.1", 0, "TEST", &error)) << error;
    Accept();
  }
  std::string address() const {
    return rendezvous::JoinAddress("127.0.0.1", acceptor_.local_endpoint().port());
  }
  void CutAll() {
    for (const auto& path : paths_) path->cut = true;
  }
  std::size_t connections() const { return paths_.size(); }

 private:
  struct Path {
    Path(tcp::socket from, stream_protocol::socket to)
        : client(std::move(from)), server(std::move(to)) {}
    tcp::socket client;
    stream_protocol::socket server;
    std::array<char, 16384> up, down;
    bool cut = false;
  };

  void Accept() {
    acceptor_.async_accept([this](std::error_code error, tcp::socket socket) {
      if (error) return;
      stream_protocol::socket server(acceptor_.get_executor());
      server.connect(server_, error);
      if (!error) {
        auto path = std::make_shared<Path>(std::move(socket), std::move(server));
        paths_.push_back(path);
        Carry(path, path->client, path->server, path->up);
        Carry(path, path->server, path->client, path->down);
      }
      Accept();
    });
  }
  template <class From, class To>
  static void Carry(const std::shared_ptr<Path>& path, From& from, To& to,
                    std::array<char, 16384>& buffer) {
    from.async_read_some(asio::buffer(buffer),
                         [=, &from, &to, &buffer](std::error_code error, std::size_t length) {
                           if (path->cut) return;  // and nobody is told
                           std::error_code ended;
                           if (!error) asio::write(to, asio::buffer(buffer, length), ended);
                           if (error || ended) {
                             path->client.close(ended);
                             path->server.close(ended);
                             return;
                           }
                           Carry(path, from, to, buffer);
                         });
  }

  tcp::acceptor acceptor_;
  const std::string server_;
  std::vector<std::shared_ptr<Path>> paths_;
};

TEST(OperatorSilenceTest, AnOperatorThatIsCutOffIsLeftForTheOneThatCanBeReached) {
  const auto directory =
      std::filesystem::temp_directory_path() / ("operator-silence-" + std::to_string(getpid()));
  std::filesystem::create_directories(directory);
  const std::string socket = directory / "operator.sock";
  testing::FakeOperator server(socket, 1, 1);
  server.Start();
  asio::io_context loop;
  Network network(&loop, socket);
  std::vector<bool> told;
  rendezvous::OperatorCallbacks callbacks;
  callbacks.on_connection = [&](bool connected) { told.push_back(connected); };
  callbacks.on_found = [](const std::string&) {};
  callbacks.on_target = [](uint32_t, uint32_t, uint32_t) {};
  callbacks.on_accepted = [] {};
  rendezvous::RegistrationInfo registration;
  registration.pod_uid = "u";
  const auto client =
      rendezvous::OperatorClient::Create(&loop, network.address(), "", registration, callbacks);
  const auto run_until = [&](auto so) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!so() && std::chrono::steady_clock::now() < deadline) {
      loop.run_for(std::chrono::milliseconds(20));
    }
    return so();
  };
  ASSERT_TRUE(run_until([&] { return told == std::vector{true}; }));
  network.CutAll();
  EXPECT_TRUE(run_until([&] {
    return told == std::vector{true, false, true};
  })) << "connections made: "
      << network.connections();
  client->Stop();
  server.Stop();
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace ringmaster::app
