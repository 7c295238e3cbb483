// Messages for records, from a sidecar's side: a gRPC client with the real server.
#include "operator/app/record_calls.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/membership/message_json.h"
#include "operator.grpc.pb.h"
#include "operator/app/operator_link.h"
#include "operator/local/store/in_memory_api.h"
#include "operator/local/store/store.h"

namespace ringmaster::app {
namespace {

// An API server that does not answer for one job until it is released.
class StuckApi : public local::InMemoryApi {
 public:
  using InMemoryApi::InMemoryApi;
  kube::Result<kube::Json> Get(const kube::Resource& resource, const std::string& ns,
                               const std::string& name) override {
    if (name == "stuck-record") {
      asked_ = true;
      asked_.notify_all();
      let_go_.wait(false);
    }
    return InMemoryApi::Get(resource, ns, name);
  }
  void WaitForTheFirst() { asked_.wait(false); }
  void LetGo() {
    let_go_ = true;
    let_go_.notify_all();
  }

 private:
  std::atomic<bool> asked_{false}, let_go_{false};
};

class RecordCallsTest : public testing::Test {
 protected:
  RecordCallsTest() {
    registry_.SetJobLookup([](const std::string&, const std::string&) { return true; });
    auto server = OperatorLinkServer::Start("127.0.0.1:0", &registry_, &records_);
    EXPECT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    stub_ = v1::OperatorLink::NewStub(
        grpc::CreateChannel(server_->target(), grpc::InsecureChannelCredentials()));
  }
  ~RecordCallsTest() override {
    api_->LetGo();
    server_->Stop();
  }
  struct Call {
    grpc::ClientContext context;
    v1::RecordRequest request;
    v1::RecordReply reply;
    std::promise<grpc::StatusCode> done;
    std::future<grpc::StatusCode> code = done.get_future();
  };
  std::unique_ptr<Call> Ask(const std::string& job) {
    auto call = std::make_unique<Call>();
    call->context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    call->request.set_job_namespace("default");
    call->request.set_job_name(job);
    call->request.set_job_uid(job);
    membership::Message prepare;
    prepare.kind = membership::MessageKind::kPrepare;
    prepare.from = "a";
    prepare.ballot = {1, "a"};
    call->request.set_message(membership::EncodeMessage(prepare));
    Call* raw = call.get();
    stub_->async()->Record(&raw->context, &raw->request, &raw->reply,
                           [raw](const grpc::Status& s) { raw->done.set_value(s.error_code()); });
    return call;
  }

  const std::shared_ptr<StuckApi> api_ =
      std::make_shared<StuckApi>(std::make_shared<local::Store>(local::StoreOptions{}));
  controllers::SidecarRegistry registry_;
  controllers::QuorumRecordStore records_{api_};
  std::unique_ptr<OperatorLinkServer> server_;
  std::unique_ptr<v1::OperatorLink::Stub> stub_;
};

TEST_F(RecordCallsTest, AJobWhoseApiCallIsStuckHoldsUpNoOther) {
  std::vector<std::unique_ptr<Call>> stuck;
  for (int i = 0; i < 20; ++i) stuck.push_back(Ask("stuck"));
  const auto other = Ask("other");
  EXPECT_EQ(other->code.get(), grpc::StatusCode::NOT_FOUND) << "it has no record";
  api_->LetGo();
  for (auto& call : stuck) EXPECT_EQ(call->code.get(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(RecordCallsTest, AJobThatCallsTooOftenIsRefused) {
  std::vector<std::unique_ptr<Call>> flood;
  flood.push_back(Ask("stuck"));
  api_->WaitForTheFirst();  // it is being answered, so it doesn't wait any more
  std::vector<std::unique_ptr<v1::OperatorLink::Stub>> connections;
  for (int connection = 0; connection < 8; ++connection) {  // one connection allows fewer streams
    grpc::ChannelArguments own;
    own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stub_ = v1::OperatorLink::NewStub(
        grpc::CreateCustomChannel(server_->target(), grpc::InsecureChannelCredentials(), own));
    for (int i = 0; i < 20; ++i) flood.push_back(Ask("stuck"));
    connections.push_back(std::move(stub_));
  }
  const auto refused = [&] {
    return std::count_if(flood.begin(), flood.end(), [](const auto& call) {
      return call->code.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    });
  };
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(15);
  while (refused() < 160 - 64 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  api_->LetGo();
  std::map<grpc::StatusCode, int> ended;
  for (auto& call : flood) ++ended[call->code.get()];
  EXPECT_EQ(ended[grpc::StatusCode::NOT_FOUND], 65) << "64 wait and one is being answered";
  EXPECT_EQ(ended[grpc::StatusCode::RESOURCE_EXHAUSTED], 160 - 64);
}

}  // namespace
}  // namespace ringmaster::app
