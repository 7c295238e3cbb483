#include "sidecar/link_server/link_server.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <asio/io_context.hpp>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/worker_link/frame.h"
#include "tests/support/temp_dir.h"

namespace ringmaster::link_server {
namespace {

using nlohmann::json;
using worker_link::EncodeFrame;
using worker_link::FrameReader;

// A peer with a blocking socket; the loop runs on the test's thread between its reads.
class Peer {
 public:
  explicit Peer(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ~Peer() { Close(); }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  void SendBytes(const std::string& bytes) {
    EXPECT_EQ(send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void Send(const json& frame) { SendBytes(EncodeFrame(frame)); }
  // What can be read now: a frame, or nothing.
  std::optional<json> Receive() {
    char buffer[4096];
    ssize_t got = recv(fd_, buffer, sizeof buffer, 0);
    if (got == 0) closed_ = true;
    if (got > 0) reader_.Feed({buffer, static_cast<size_t>(got)});
    json frame;
    if (reader_.Next(&frame) == FrameReader::Result::kFrame) return frame;
    return std::nullopt;
  }
  bool closed() const { return closed_; }

 private:
  int fd_ = -1;
  bool closed_ = false;
  FrameReader reader_;
};

class LinkServerTest : public testing::Test {
 protected:
  void SetUp() override { Listen(std::chrono::minutes(1)); }
  void Listen(std::chrono::milliseconds hello_deadline) {
    LinkCallbacks callbacks;
    callbacks.on_hello = [this](ConnectionId id, Role role, const json&) {
      last_ = id;
      events_.push_back(role == Role::kWorker ? "worker" : "launcher");
    };
    callbacks.on_frame = [this](ConnectionId, const json& frame) { events_.push_back(frame["t"]); };
    callbacks.on_closed = [this](ConnectionId, const std::string&) { events_.push_back("closed"); };
    auto server = LinkServer::Listen(&loop_, Path(), callbacks, hello_deadline);
    ASSERT_TRUE(server) << server.error();
    server_ = std::move(*server);
  }
  void TearDown() override {
    server_->Stop();
    EXPECT_FALSE(std::filesystem::exists(Path())) << "the socket file stays behind";
  }
  std::string Path() const { return temp_.path() / "link.sock"; }

  template <typename Done>
  bool RunUntil(Done done) {
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (std::chrono::steady_clock::now() < deadline) {
      if (done()) return true;
      loop_.restart();
      loop_.run_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  json Await(Peer* peer) {
    std::optional<json> frame;
    RunUntil([&] { return (frame = peer->Receive()).has_value() || peer->closed(); });
    return frame.value_or(json{{"t", "nothing"}});
  }

  static json Hello(const char* role) {
    return {{"t", "hello"}, {"version", 1}, {"role", role}, {"slots", 1}};
  }

  const support::TempDir temp_;
  asio::io_context loop_;
  std::unique_ptr<LinkServer> server_;
  std::vector<std::string> events_;
  ConnectionId last_ = 0;
};

TEST_F(LinkServerTest, CarriesFramesBothWays) {
  Peer peer(Path());
  peer.Send(Hello("worker"));
  peer.Send({{"t", "enter"}});
  ASSERT_TRUE(RunUntil([&] { return events_.size() == 2; }));
  EXPECT_EQ(events_, (std::vector<std::string>{"worker", "enter"}));
  server_->Send(last_, {{"t", "welcome"}});
  EXPECT_EQ(Await(&peer)["t"], "welcome");
  peer.Close();
  EXPECT_TRUE(RunUntil([&] { return events_.back() == "closed"; }));
}

TEST_F(LinkServerTest, RefusesAnotherVersionByNamingBoth) {
  Peer peer(Path());
  peer.Send({{"t", "hello"}, {"version", 2}, {"role", "worker"}});
  json answer = Await(&peer);
  EXPECT_EQ(answer["t"], "error");
  EXPECT_NE(answer["message"].get<std::string>().find("version 2"), std::string::npos);
  EXPECT_TRUE(RunUntil([&] { return peer.Receive(), peer.closed(); }));
  EXPECT_TRUE(events_.empty()) << "nobody hears of a peer that was refused";
}

TEST_F(LinkServerTest, ClosesOnGarbageAndServesTheNext) {
  for (const std::string& bytes : {std::string("\xff\xff\xff\xff"), std::string("\x02\0\0\0{]", 6),
                                   std::string("GET / HTTP/1.1\r\n\r\n")}) {
    Peer peer(Path());
    peer.SendBytes(bytes);
    EXPECT_EQ(Await(&peer)["t"], "error");
    EXPECT_TRUE(RunUntil([&] { return peer.Receive(), peer.closed(); }));
  }
  Peer good(Path());
  good.Send(Hello("launcher"));
  EXPECT_TRUE(RunUntil([&] { return !events_.empty(); }));
}

TEST_F(LinkServerTest, RefusesWhoDoesNotBeginWithHello) {
  Peer peer(Path());
  peer.Send({{"t", "enter"}});
  EXPECT_EQ(Await(&peer)["t"], "error");
}

TEST_F(LinkServerTest, ForgetsAPeerThatLeavesInTheMiddleOfAFrame) {
  Peer peer(Path());
  peer.Send(Hello("worker"));
  peer.SendBytes(std::string("\x10\0\0\0{", 5));
  peer.Close();
  ASSERT_TRUE(RunUntil([&] { return events_.size() == 2; }));
  EXPECT_EQ(events_.back(), "closed");
  server_->Send(last_, {{"t", "welcome"}});  // to nobody
}

// `error` would be the end of a worker's script.
TEST_F(LinkServerTest, DropsAPeerWithoutAWord) {
  Peer peer(Path());
  peer.Send(Hello("worker"));
  ASSERT_TRUE(RunUntil([&] { return !events_.empty(); }));
  server_->Drop(last_);
  EXPECT_EQ(events_, std::vector<std::string>{"worker"}) << "the caller may be in the middle of it";
  EXPECT_EQ(Await(&peer)["t"], "nothing");
  EXPECT_TRUE(peer.closed());
  EXPECT_EQ(events_.back(), "closed");
  server_->Drop(last_);  // nobody
}

TEST_F(LinkServerTest, DropsWithoutAWordWhoSaysNoHelloInTime) {
  server_->Stop();
  Listen(std::chrono::milliseconds(10));
  Peer peer(Path());
  EXPECT_EQ(Await(&peer)["t"], "nothing");
  EXPECT_TRUE(peer.closed());
  EXPECT_TRUE(events_.empty());
}

TEST(LinkServer, SaysWhyItCannotListen) {
  asio::io_context loop;
  const auto nowhere = LinkServer::Listen(&loop, "/nonexistent/dir/s", {});
  ASSERT_FALSE(nowhere);
  EXPECT_NE(nowhere.error().find("/nonexistent/dir/s"), std::string::npos);
  const auto too_long = LinkServer::Listen(&loop, std::string(108, 'x'), {});
  ASSERT_FALSE(too_long);
  EXPECT_NE(too_long.error().find("108"), std::string::npos);
}

}  // namespace
}  // namespace ringmaster::link_server
