#include "sidecar/rendezvous/operator_client.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <filesystem>
#include <optional>
#include <sstream>
#include <vector>

#include "operator.grpc.pb.h"
#include "sidecar/net/address.h"
#include "tests/support/temp_dir.h"

namespace ringmaster::rendezvous {
namespace {

using asio::ip::tcp;
using Clock = std::chrono::steady_clock;

// Takes connections and says nothing, as a machine that is too busy to answer.
class SilentServer {
 public:
  explicit SilentServer(asio::io_context* loop) : acceptor_(*loop) {
    EXPECT_TRUE(net::ListenOn(&acceptor_, "127.0.0.1", 0, "TEST"));
    Accept();
  }
  std::string address() const {
    return net::JoinAddress("127.0.0.1", acceptor_.local_endpoint().port());
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
  // The server may be late to see that it was dialled, so the time counts from before that.
  const auto before = Clock::now();
  const auto client = OperatorClient::Create(&loop, server.address(), "", {}, callbacks);
  const auto deadline = Clock::now() + std::chrono::seconds(30);
  while (server.dialled.size() < 2 && Clock::now() < deadline) {
    loop.run_for(std::chrono::milliseconds(20));
  }
  ASSERT_GE(server.dialled.size(), 2u) << "it is tried again";
  EXPECT_GE(server.dialled[1] - before, std::chrono::seconds(1));
  client->Stop();
}

class RecordService final : public v1::OperatorLink::Service {
  grpc::Status Record(grpc::ServerContext*, const v1::RecordRequest*,
                      v1::RecordReply* reply) override {
    reply->set_message("noted");
    return grpc::Status::OK;
  }
};

class RecordLogTest : public testing::Test {
 protected:
  void SetUp() override {
    target_ = "unix:" + (dir_ / "operator.sock").string();
    old_logger_ = spdlog::default_logger();
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_)));
    OperatorCallbacks callbacks;
    callbacks.on_connection = [](bool) {};
    client_ = OperatorClient::Create(&loop_, target_, "", {}, callbacks);
  }
  void TearDown() override {
    client_->Stop();
    spdlog::set_default_logger(old_logger_);
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
  }

  void StartOperator() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(target_, grpc::InsecureServerCredentials());
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }
  // Whether it was reached; nullopt: no answer came.
  std::optional<bool> Ask() {
    std::optional<bool> reached;
    client_->AskRecord("", std::chrono::seconds(10),
                       [&](bool ok, const std::string&) { reached = ok; });
    const auto deadline = Clock::now() + std::chrono::seconds(30);
    while (!reached && Clock::now() < deadline) loop_.run_for(std::chrono::milliseconds(5));
    return reached;
  }
  std::size_t Lines(const std::string& text) {
    std::size_t lines = 0;
    const std::string log = log_.str();
    for (std::size_t at = log.find(text); at != std::string::npos; at = log.find(text, at + 1)) {
      ++lines;
    }
    return lines;
  }

  asio::io_context loop_;
  const asio::executor_work_guard<asio::io_context::executor_type> busy_{loop_.get_executor()};
  support::TempDir temporary_;
  const std::filesystem::path dir_ = temporary_.path();
  std::string target_;
  std::ostringstream log_;
  std::shared_ptr<spdlog::logger> old_logger_;
  RecordService service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<OperatorClient> client_;
};

TEST_F(RecordLogTest, ThatItIsOutOfReachIsSaidOnceAndThatItIsBackToo) {
  for (int i = 0; i < 5; ++i) ASSERT_EQ(Ask(), false);
  EXPECT_EQ(Lines("record not reached seconds=0.0 tries=1 reason="), 1u) << log_.str();
  EXPECT_EQ(Lines("record not reached"), 1u) << log_.str();
  ASSERT_NO_FATAL_FAILURE(StartOperator());
  const auto deadline = Clock::now() + std::chrono::seconds(60);
  while (Ask() != true && Clock::now() < deadline) {
  }
  EXPECT_EQ(Ask(), true);
  EXPECT_EQ(Lines("record reached again seconds="), 1u) << log_.str();
}

}  // namespace
}  // namespace ringmaster::rendezvous
