// Sidecar and operator if the node of one of them is cut off: connections stay open, but no data
// comes through. The real two ends, with a network between them that can be cut.
#include <gtest/gtest.h>

#include <array>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/write.hpp>
#include <atomic>
#include <filesystem>
#include <memory>

#include "common/rpc/keep_alive.h"
#include "operator/app/operator_link.h"
#include "operator/local/store/in_memory_api.h"
#include "operator/local/store/store.h"
#include "sidecar/net/address.h"
#include "sidecar/rendezvous/operator_client.h"

namespace ringmaster::app {
namespace {

using asio::ip::tcp;
using asio::local::stream_protocol;

constexpr std::chrono::seconds kPatience{60};

// Passes bytes between a TCP port and a server's socket. Cutting it affects only existing
// connections.
class Network {
 public:
  Network(asio::io_context* loop, std::string server)
      : acceptor_(*loop), server_(std::move(server)) {
    EXPECT_TRUE(net::ListenOn(&acceptor_, "127.0.0.1", 0, "TEST"));
    Accept();
  }
  std::string address() const {
    return net::JoinAddress("127.0.0.1", acceptor_.local_endpoint().port());
  }
  void CutAll() {
    for (const auto& path : paths_) path->cut = true;
  }
  void Close() { acceptor_.close(); }

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
                           if (path->cut) return;  // without telling either end
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

using Story = std::vector<bool>;  // connected, not connected, ...

class OperatorSilenceTest : public testing::Test {
 protected:
  OperatorSilenceTest() {
    std::filesystem::create_directories(directory_);
    registry_.SetPodLookup([](const job::Registration&) { return true; });
    auto server = OperatorLinkServer::Start("unix:" + Socket(), &registry_, &records_);
    EXPECT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    network_ = std::make_unique<Network>(&loop_, Socket());
    rendezvous::OperatorCallbacks callbacks;
    callbacks.on_connection = [this](bool connected) { told_.push_back(connected); };
    callbacks.on_accepted = [] {};
    job::Registration sidecar;
    sidecar.job_namespace = "default";
    sidecar.job_name = sidecar.job_uid = "job";
    sidecar.pod_name = sidecar.pod_uid = "pod";
    client_ =
        rendezvous::OperatorClient::Create(&loop_, network_->address(), "", sidecar, callbacks);
  }
  ~OperatorSilenceTest() override {
    client_->Stop();
    server_->Stop();
    std::filesystem::remove_all(directory_);
  }
  std::string Socket() const { return directory_ / "operator.sock"; }
  bool RunUntil(const std::function<bool()>& so, std::chrono::seconds patience) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (!so() && std::chrono::steady_clock::now() < deadline) {
      loop_.run_for(std::chrono::milliseconds(20));
    }
    return so();
  }

  const std::filesystem::path directory_ =
      std::filesystem::temp_directory_path() / ("operator-silence-" + std::to_string(getpid()));
  const std::shared_ptr<kube::KubeApi> api_ =
      std::make_shared<local::InMemoryApi>(std::make_shared<local::Store>(local::StoreOptions{}));
  controllers::SidecarRegistry registry_;
  controllers::QuorumRecordStore records_{api_};
  std::unique_ptr<OperatorLinkServer> server_;
  asio::io_context loop_;
  std::unique_ptr<Network> network_;
  Story told_;
  std::unique_ptr<rendezvous::OperatorClient> client_;
};

TEST_F(OperatorSilenceTest, ASidecarLeavesAnOperatorThatIsCutOffForTheOneThatCanBeReached) {
  ASSERT_TRUE(RunUntil([&] { return told_ == Story{true}; }, kPatience));
  network_->CutAll();
  EXPECT_TRUE(RunUntil([&] { return told_ == Story{true, false, true}; }, kPatience));
}

TEST_F(OperatorSilenceTest, ASidecarThatIsCutOffIsConnectedNoMore) {
  ASSERT_TRUE(RunUntil([&] { return registry_.connected() == 1; }, kPatience));
  network_->CutAll();
  network_->Close();
  EXPECT_TRUE(RunUntil([&] { return registry_.connected() == 0; }, kPatience));
}

TEST_F(OperatorSilenceTest, RebuildsOfWhichNoOperatorHasHeardAreAllToldToTheNext) {
  ASSERT_TRUE(RunUntil([&] { return told_ == Story{true}; }, kPatience));
  server_->Stop();
  ASSERT_TRUE(RunUntil([&] { return told_ == Story({true, false}); }, kPatience));
  client_->ReportView(nullptr, R"({"epoch": 5, "reason": "PodLost", "stepsLost": 2})", 0);
  client_->ReportView(nullptr, R"({"epoch": 6, "reason": "PodJoined", "stepsLost": 0})", 0);
  auto server = OperatorLinkServer::Start("unix:" + Socket(), &registry_, &records_);
  ASSERT_TRUE(server) << server.error().message;
  server_ = std::move(*server);
  ASSERT_TRUE(RunUntil([&] { return registry_.Facts("job").rebuilds.size() == 2; }, kPatience));
  EXPECT_EQ(registry_.Facts("job").rebuilds.front().steps_lost, 2);
}

TEST_F(OperatorSilenceTest, ASidecarWhosePodIsSeenLateGetsIn) {
  ASSERT_TRUE(RunUntil([&] { return told_ == Story{true}; }, kPatience));
  std::atomic<int> asked = 0;
  registry_.SetPodLookup([&asked](const job::Registration&) { return ++asked > 3; });
  network_->CutAll();
  EXPECT_TRUE(RunUntil([&] { return told_ == Story({true, false, true}); }, kPatience));
  EXPECT_EQ(asked.load(), 4);
}

TEST_F(OperatorSilenceTest, ThoseWhoHaveNothingToSayStayConnected) {
  ASSERT_TRUE(RunUntil([&] { return told_ == Story{true}; }, kPatience));
  // A server that doesn't allow pings this often would hang up at the third.
  const auto four_pings = std::chrono::milliseconds(4 * rpc::kPingMs + 1000);
  RunUntil([&] { return told_.size() > 1; },
           std::chrono::duration_cast<std::chrono::seconds>(four_pings));
  EXPECT_EQ(told_, Story{true});
}

}  // namespace
}  // namespace ringmaster::app
