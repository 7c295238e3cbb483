#include "sidecar/rendezvous/operator_client.h"

#include <gtest/gtest.h>

#include <asio/io_context.hpp>
#include <vector>

#include "sidecar/rendezvous/address.h"

namespace ringmaster::rendezvous {
namespace {

using asio::ip::tcp;
using Clock = std::chrono::steady_clock;

// Takes connections and says nothing, as a machine that is too busy to answer.
class SilentServer {
 public:
  explicit SilentServer(asio::io_context* loop) : acceptor_(*loop) {
    std::string error;
    EXPECT_TRUE(ListenOn(&acceptor_, "127.0.0.1", 0, "TEST", &error)) << error;
    Accept();
  }
  std::string address() const {
    return JoinAddress("127.0.0.1", acceptor_.local_endpoint().port());
  }
  std::vector<Clock::time_point> dialled;

 private:
  void Accept() {
    acceptor_.async_accept([this](std::error_code error, tcp::socket socket) {
      if (error) return;
      dialled.push_back(Clock::now());
      sockets_.push_back(std::move(socket));
      Accept();
    });
  }
  tcp::acceptor acceptor_;
  std::vector<tcp::socket> sockets_;
};

TEST(OperatorClientTest, ABusyOperatorHasASecondToAnswerBeforeItIsDialledAgain) {
  asio::io_context loop;
  SilentServer server(&loop);
  OperatorCallbacks callbacks;
  callbacks.on_connection = [](bool) {};
  const auto client = OperatorClient::Create(&loop, server.address(), "", {}, callbacks);
  const auto deadline = Clock::now() + std::chrono::seconds(30);
  while (server.dialled.size() < 2 && Clock::now() < deadline) {
    loop.run_for(std::chrono::milliseconds(20));
  }
  ASSERT_GE(server.dialled.size(), 2u) << "it is tried again";
  EXPECT_GE(server.dialled[1] - server.dialled[0], std::chrono::seconds(1));
  client->Stop();
}

}  // namespace
}  // namespace ringmaster::rendezvous
