// The link from a sidecar's side: a gRPC client with the real server.
#include "operator/app/operator_link.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "common/membership/message_json.h"
#include "common/membership/view_json.h"
#include "operator.grpc.pb.h"
#include "operator/app/operator_identity.h"
#include "operator/local/store/in_memory_api.h"
#include "operator/local/store/store.h"
#include "tests/support/temp_dir.h"

namespace ringmaster::app {
namespace {

class OperatorLinkTest : public testing::Test {
 protected:
  OperatorLinkTest() {
    registry_.SetPodLookup(
        [this](const job::Registration& registration) { return registration.pod_uid == "pod"; });
    registry_.SetJobLookup(
        [](const std::string& key, const std::string&) { return key == "default/digits"; });
    auto server = OperatorLinkServer::Start("127.0.0.1:0", &registry_, &records_);
    EXPECT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    stub_ = v1::OperatorLink::NewStub(
        grpc::CreateChannel(server_->target(), grpc::InsecureChannelCredentials()));
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  }
  // The end of a stream that registers; OK if it was accepted.
  grpc::Status Register(const v1::SidecarReport& report) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    auto stream = stub_->Attend(&context);
    stream->Write(report);
    v1::OperatorNotice notice;
    if (stream->Read(&notice) && notice.has_accepted()) stream->WritesDone();
    return stream->Finish();
  }
  v1::SidecarReport Registration() {
    v1::SidecarReport report;
    auto* registration = report.mutable_registration();
    registration->set_job_namespace("default");
    registration->set_job_name("digits");
    registration->set_job_uid("job");
    registration->set_pod_name("digits-worker-0");
    registration->set_pod_uid("pod");
    registration->set_boot_id("boot");
    return report;
  }

  const std::shared_ptr<local::Store> store_ =
      std::make_shared<local::Store>(local::StoreOptions{});
  const std::shared_ptr<kube::KubeApi> api_ = std::make_shared<local::InMemoryApi>(store_);
  controllers::SidecarRegistry registry_;
  controllers::QuorumRecordStore records_{api_};
  std::unique_ptr<OperatorLinkServer> server_;
  std::unique_ptr<v1::OperatorLink::Stub> stub_;
  grpc::ClientContext context_;
};

TEST_F(OperatorLinkTest, ASidecarIsAcceptedReportsAndIsTold) {
  auto stream = stub_->Attend(&context_);
  ASSERT_TRUE(stream->Write(Registration()));
  v1::OperatorNotice notice;
  ASSERT_TRUE(stream->Read(&notice));
  EXPECT_TRUE(notice.has_accepted());
  // `accepted` is sent before the registry knows, so the notice is sent from a later change.
  registry_.SetChangeHandler([&](const std::string& key, std::chrono::milliseconds) {
    EXPECT_EQ(key, "default/digits");
    registry_.Notify("job", {{"pod", planner::TargetNotice{{1, {}}, 4}},
                             {"pod", planner::DrainNotice{planner::UidsOf({"other"}), "try", 7}}});
  });
  v1::SidecarReport ready;
  ready.mutable_readiness()->set_ready(true);
  membership::Candidate candidate;
  candidate.pod.uid = "pod";
  candidate.pod.name = "digits-worker-0";
  ready.mutable_readiness()->set_member(membership::EncodeCandidate(candidate));
  ASSERT_TRUE(stream->Write(ready));
  v1::SidecarReport failing;
  failing.mutable_failing_gpus()->set_gpus(R"([{"slot": 1, "failing": "Xid 79"}, 7])");
  ASSERT_TRUE(stream->Write(failing));
  v1::SidecarReport earlier;
  earlier.mutable_earlier_exits()->add_exits()->set_incarnation(3);
  ASSERT_TRUE(stream->Write(earlier));
  v1::SidecarReport all_leave;
  all_leave.mutable_all_leave();
  ASSERT_TRUE(stream->Write(all_leave));
  v1::SidecarReport awaited;
  awaited.mutable_step_awaited()->set_awaited_ms(5000);
  ASSERT_TRUE(stream->Write(awaited));
  ASSERT_TRUE(stream->Read(&notice));
  EXPECT_EQ(notice.target().expected_pods(), 4u);
  ASSERT_TRUE(stream->Read(&notice));
  ASSERT_TRUE(notice.has_drain()) << "what was said once is not said again";
  EXPECT_EQ(notice.drain().deadline_unix_ms(), 7);
  EXPECT_LT(notice.drain().left_ms(), 0) << "that was in 1970";
  // The change that sent the notice may have been the registration.
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!registry_.Facts("job").sidecars.at(0).step_awaited_since) {
    ASSERT_LT(std::chrono::steady_clock::now(), patience);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(registry_.Facts("job").sidecars.at(0).ready);
  EXPECT_TRUE(registry_.Facts("job").sidecars.at(0).knows_that_all_leave);
  EXPECT_EQ(registry_.Facts("job").sidecars.at(0).boot_id, "boot");
  ASSERT_EQ(registry_.Facts("job").sidecars.at(0).failing_gpus.size(), 1u);
  EXPECT_EQ(registry_.Facts("job").sidecars.at(0).failing_gpus[0].slot, 1);
  ASSERT_EQ(registry_.Facts("job").exits.size(), 1u);
  EXPECT_TRUE(registry_.Facts("job").exits[0].told_before);
  EXPECT_EQ(registry_.Facts("job").exits[0].incarnation, 3u);
  registry_.SetChangeHandler(nullptr);
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(OperatorLinkTest, AReportBeforeTheRegistrationEndsTheStreamWithTheReason) {
  auto stream = stub_->Attend(&context_);
  v1::SidecarReport report;
  report.mutable_finished()->set_epoch(1);
  stream->Write(report);
  v1::OperatorNotice notice;
  while (stream->Read(&notice)) {
  }
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "the first report has to be a registration");
}

TEST_F(OperatorLinkTest, AnOperatorThatStopsSaysSoToEverySidecar) {
  auto stream = stub_->Attend(&context_);
  ASSERT_TRUE(stream->Write(Registration()));
  v1::OperatorNotice notice;
  ASSERT_TRUE(stream->Read(&notice));
  const auto begin = std::chrono::steady_clock::now();
  std::jthread stopping([this] { server_->Stop(); });
  EXPECT_FALSE(stream->Read(&notice));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), testing::HasSubstr("the operator stops"));
  stopping.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

struct Refused {
  const char* what;
  void (*make)(v1::SidecarReport& report);  // the report after the registration
  const char* why;                          // part of the error
};

class RefusedReport : public OperatorLinkTest, public testing::WithParamInterface<Refused> {};

TEST_P(RefusedReport, EndsTheStreamWithTheReason) {
  auto stream = stub_->Attend(&context_);
  ASSERT_TRUE(stream->Write(Registration()));
  v1::SidecarReport report = Registration();
  GetParam().make(report);
  stream->Write(report);
  v1::OperatorNotice notice;
  while (stream->Read(&notice)) {
  }
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), testing::HasSubstr(GetParam().why));
}

INSTANTIATE_TEST_SUITE_P(
    OperatorLinkTest, RefusedReport,
    testing::Values(
        Refused{"ASecondRegistration", [](v1::SidecarReport&) {}, "a second registration"},
        Refused{"ReadyWithoutAMember",
                [](v1::SidecarReport& r) { r.mutable_readiness()->set_ready(true); },
                "readiness.member is required"},
        Refused{"AMemberThatIsNone",
                [](v1::SidecarReport& r) { r.mutable_readiness()->set_member("nonsense"); },
                "readiness.member: "},
        Refused{"AReportThatIsTooLong",
                [](v1::SidecarReport& r) {
                  for (int slot = 0; slot < (1 << 18); ++slot)
                    r.mutable_readiness()->add_missing_slots(slot);
                },
                "at most 262144 are allowed"},
        Refused{"AViewThatIsNone",
                [](v1::SidecarReport& r) { r.mutable_view()->set_view("nonsense"); }, "view: "},
        Refused{"AReportThatIsNone",
                [](v1::SidecarReport& r) { r.mutable_recovery()->set_report("nonsense"); },
                "recovery."}),
    [](const auto& info) { return std::string(info.param.what); });

TEST_F(OperatorLinkTest, ARegistrationNeedsJobAndPod) {
  for (void (*spoil)(v1::Registration*) : {+[](v1::Registration* r) { r->clear_job_uid(); },
                                           +[](v1::Registration* r) { r->clear_pod_uid(); },
                                           +[](v1::Registration* r) { r->clear_job_name(); }}) {
    v1::SidecarReport report = Registration();
    spoil(report.mutable_registration());
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    auto stream = stub_->Attend(&context);
    stream->Write(report);
    v1::OperatorNotice notice;
    EXPECT_FALSE(stream->Read(&notice));
    EXPECT_THAT(stream->Finish().error_message(), testing::HasSubstr("are required"));
  }
  EXPECT_EQ(registry_.connected(), 0u);
}

TEST_F(OperatorLinkTest, ExitsAndFiguresArriveAsTheyWereSaidAndTheEndIsNoticed) {
  auto stream = stub_->Attend(&context_);
  ASSERT_TRUE(stream->Write(Registration()));
  v1::OperatorNotice notice;
  ASSERT_TRUE(stream->Read(&notice));
  v1::SidecarReport exit;
  exit.mutable_worker_exit()->set_slot(1);
  exit.mutable_worker_exit()->set_exit_code(139);
  exit.mutable_worker_exit()->set_restarting(true);
  exit.mutable_worker_exit()->set_by_us(true);
  ASSERT_TRUE(stream->Write(exit));
  v1::SidecarReport view;
  view.mutable_view()->set_rebuild(R"({"epoch": 7, "reason": "PodLost", "stepsLost": 2,
      "seconds": {"detect": 1, "decide": 2, "stop": 4, "connect": 8}})");
  ASSERT_TRUE(stream->Write(view));
  ASSERT_TRUE(stream->WritesDone());
  while (stream->Read(&notice)) {
  }
  EXPECT_TRUE(stream->Finish().ok());
  const auto facts = registry_.Facts("job");
  ASSERT_EQ(facts.exits.size(), 1u);
  EXPECT_EQ(facts.exits[0].exit_code, 139);
  EXPECT_TRUE(facts.exits[0].restarting && facts.exits[0].by_us);
  ASSERT_EQ(facts.rebuilds.size(), 1u);
  EXPECT_EQ(facts.rebuilds[0].steps_lost, 2);
  EXPECT_DOUBLE_EQ(job::TotalSeconds(facts.rebuilds[0].seconds), 11)
      << "the stop runs inside the decision";
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (registry_.connected() != 0 && std::chrono::steady_clock::now() < end)
    std::this_thread::yield();
  EXPECT_EQ(registry_.connected(), 0u);
}

TEST_F(OperatorLinkTest, NoticesArriveAsTheyWereSaidAndInTheirOrder) {
  auto stream = stub_->Attend(&context_);
  ASSERT_TRUE(stream->Write(Registration()));
  v1::OperatorNotice notice;
  ASSERT_TRUE(stream->Read(&notice));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (registry_.connected() != 1 && std::chrono::steady_clock::now() < end)
    std::this_thread::yield();
  registry_.Notify("job", {{"pod", planner::PodsGoneOf({{"other", "PodGone"}})},
                           {"pod", planner::RecoverNotice{2, true}},
                           {"pod", planner::FinishNotice{"done"}}});
  ASSERT_TRUE(stream->Read(&notice));
  EXPECT_EQ(notice.pod_gone().pod_uid(), "other");
  EXPECT_EQ(notice.pod_gone().reason(), "PodGone");
  ASSERT_TRUE(stream->Read(&notice));
  EXPECT_EQ(notice.recover().lineage(), 2u);
  EXPECT_TRUE(notice.recover().fresh_workers());
  ASSERT_TRUE(stream->Read(&notice));
  EXPECT_EQ(notice.finish().reason(), "done");
}

// A view of `bytes` or a few more.
membership::ViewPtr LargeView(std::uint64_t epoch, std::size_t bytes) {
  membership::View view;
  view.epoch = epoch;
  view.pods.resize(1);
  view.pods[0].name = std::string(bytes, 'x');
  return std::make_shared<const membership::View>(std::move(view));
}

TEST_F(OperatorLinkTest, ASidecarThatDoesNotReadIsDisconnected) {
  server_ = nullptr;
  server_ = *OperatorLinkServer::Start("127.0.0.1:0", &registry_, &records_, std::nullopt,
                                       std::chrono::milliseconds(100));
  stub_ = v1::OperatorLink::NewStub(
      grpc::CreateChannel(server_->target(), grpc::InsecureChannelCredentials()));
  auto stream = stub_->Attend(&context_);
  ASSERT_TRUE(stream->Write(Registration()));
  v1::OperatorNotice notice;
  ASSERT_TRUE(stream->Read(&notice));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(15);
  const auto connected = [&] { return registry_.connected() == 1; };
  while (!connected() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  // More than gRPC takes over before anybody reads, and less than the longest message.
  std::uint64_t epoch = 0;
  while (connected() && std::chrono::steady_clock::now() < end) {
    registry_.Notify("job", {{"pod", planner::ViewDecidedNotice{LargeView(++epoch, 3 << 20)}}});
    std::this_thread::yield();
  }
  EXPECT_FALSE(connected());
  while (stream->Read(&notice)) {
  }
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(OperatorLinkTest, TheRecordVotesOverTheLink) {
  // The record belongs to its job: without it the record would be collected at once.
  const auto owner = api_->Create(
      kube::HorovodJobs(), "default",
      {{"apiVersion", api::kApiVersion}, {"kind", api::kKind}, {"metadata", {{"name", "digits"}}}});
  ASSERT_TRUE(owner) << owner.error().message;
  api::HorovodJob job;
  job.name = "digits";
  job.uid = (*owner)["metadata"]["uid"].get<std::string>();
  membership::Candidate a, b;
  a.pod = {.uid = "a", .name = "digits-worker-0", .incarnation = 1};
  b.pod = {.uid = "b", .name = "digits-worker-1", .incarnation = 1};
  a.workers = b.workers = {{.slot = 0, .incarnation = 1, .ready = true}};
  const auto first = std::make_shared<const membership::View>(membership::BootstrapView({a, b}, 1));
  ASSERT_TRUE(records_.Bootstrap(job, first));
  EXPECT_EQ(records_.Bootstrap(job, first).error().code, kube::ErrorCode::kAlreadyExists);

  membership::Message prepare;
  prepare.kind = membership::MessageKind::kPrepare;
  prepare.from = "a";
  prepare.incarnation = 1;
  prepare.view = first->epoch;
  prepare.base = first;
  prepare.ballot = {1, "a"};
  v1::RecordRequest request;
  request.set_job_namespace("default");
  request.set_job_name("digits");
  request.set_job_uid(job.uid);
  request.set_message(membership::EncodeMessage(prepare));
  v1::RecordReply reply;
  const grpc::Status status = stub_->Record(&context_, request, &reply);
  ASSERT_TRUE(status.ok()) << status.error_message();
  const auto answer = membership::DecodeMessage(reply.message());
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->kind, membership::MessageKind::kPromise);

  // Another operator knows the promise, because it reads what was stored.
  controllers::QuorumRecordStore other(api_);
  prepare.ballot = {0, "b"};
  const auto refused =
      other.Answer({"default", "digits", job.uid}, membership::EncodeMessage(prepare));
  ASSERT_TRUE(refused) << refused.error().message;
  EXPECT_EQ(membership::DecodeMessage(*refused)->kind, membership::MessageKind::kRefused);
}

TEST_F(OperatorLinkTest, ASidecarCannotSpeakForAJobOfAnotherName) {
  // As the controller does at the first reconcile.
  registry_.TakenOver("default/other", "job", false);
  auto stream = stub_->Attend(&context_);
  ASSERT_TRUE(stream->Write(Registration()));
  v1::OperatorNotice notice;
  EXPECT_FALSE(stream->Read(&notice));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), testing::HasSubstr("the job of uid job is default/other"));
}

TEST_F(OperatorLinkTest, AStreamThatDoesNotRegisterIsEnded) {
  auto stream = stub_->Attend(&context_);
  v1::OperatorNotice notice;
  EXPECT_FALSE(stream->Read(&notice));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(status.error_message(), "no registration came within 5 s");
}

TEST_F(OperatorLinkTest, ASecondStreamOfAPodEndsTheFirst) {
  auto first = stub_->Attend(&context_);
  ASSERT_TRUE(first->Write(Registration()));
  v1::OperatorNotice notice;
  ASSERT_TRUE(first->Read(&notice));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  auto second = stub_->Attend(&context);
  ASSERT_TRUE(second->Write(Registration()));
  ASSERT_TRUE(second->Read(&notice));
  EXPECT_FALSE(first->Read(&notice));
  EXPECT_EQ(first->Finish().error_code(), grpc::StatusCode::ABORTED);
  registry_.Notify("job", {{"pod", planner::FinishNotice{"done"}}});
  ASSERT_TRUE(second->Read(&notice)) << "the pod is heard by its second";
  EXPECT_EQ(notice.finish().reason(), "done");
}

TEST_F(OperatorLinkTest, AStrangersPodIsRefused) {
  v1::SidecarReport report = Registration();
  report.mutable_registration()->set_pod_uid("made-up");
  const grpc::Status status = Register(report);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), testing::HasSubstr("pod_uid is \"made-up\""));
  EXPECT_TRUE(registry_.Facts("job").sidecars.empty()) << "nothing is kept of it";
}

TEST_F(OperatorLinkTest, NobodyIsLetInBeforeThePodsAreKnown) {
  registry_.SetPodLookup(nullptr);
  EXPECT_EQ(Register(Registration()).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(OperatorLinkTest, AnAddressThatIsTakenIsNamed) {
  const auto second = OperatorLinkServer::Start(server_->target(), &registry_, &records_);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find(server_->target()), std::string::npos);
}

TEST_F(OperatorLinkTest, AllAddressesAreThoseOfBothFamilies) {
  auto server = OperatorLinkServer::Start("0.0.0.0:0", &registry_, &records_);
  ASSERT_TRUE(server) << server.error().message;
  const std::string target = (*server)->target();
  for (const std::string host : {"127.0.0.1", "[::1]"}) {
    const auto channel = grpc::CreateChannel(host + target.substr(target.rfind(':')),
                                             grpc::InsecureChannelCredentials());
    EXPECT_TRUE(
        channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(30)))
        << host;
  }
}

TEST(IsLocalAddressTest, IsAUnixSocketOrLoopback) {
  for (const char* local :
       {"unix:/run/op.sock", "127.0.0.1:0", "127.1.2.3:9", "localhost:9443", "[::1]:9443"}) {
    EXPECT_TRUE(IsLocalAddress(local)) << local;
  }
  for (const char* wide : {"0.0.0.0:9443", "[::]:9443", "10.0.0.1:1", "ringmaster.system.svc:9443",
                           "localhost.example.com:1"}) {
    EXPECT_FALSE(IsLocalAddress(wide)) << wide;
  }
}

class OperatorLinkTlsTest : public testing::Test {
 protected:
  void SetUp() override {
    registry_.SetPodLookup([](const job::Registration&) { return true; });
    registry_.SetJobLookup([](const std::string& key, const std::string& uid) {
      return key == "default/digits" && uid == "mine";
    });
    auto identity = OperatorIdentity::Create(authority_);
    ASSERT_TRUE(identity) << identity.error().message;
    identity_ = std::move(*identity);
    auto server =
        OperatorLinkServer::Start("127.0.0.1:0", &registry_, &records_, identity_->files());
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }
  void TearDown() override { server_.reset(); }

  // A client with the certificate of this job.
  std::unique_ptr<v1::OperatorLink::Stub> ClientOf(const std::string& job_uid) {
    const auto pair = *tls::Issue(authority_, {tls::JobName(job_uid)},
                                  std::chrono::system_clock::now(), std::chrono::hours(1));
    const auto dir = dir_ / job_uid;
    std::filesystem::create_directories(dir);
    const tls::Files files = tls::FilesIn(dir);
    std::ofstream(files.ca) << authority_.certificate_pem;
    std::ofstream(files.certificate) << pair.certificate_pem;
    std::ofstream(files.key) << pair.key_pem;
    return v1::OperatorLink::NewStub(grpc::CreateChannel(
        server_->target(), tls::ChannelCredentials(files, {.exact = tls::kOperatorName})));
  }
  // The end of a stream whose client claims to belong to `job_uid`; OK if it was accepted.
  grpc::Status Register(v1::OperatorLink::Stub* stub, const std::string& job_uid) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    auto stream = stub->Attend(&context);
    v1::SidecarReport report;
    report.mutable_registration()->set_job_namespace("default");
    report.mutable_registration()->set_job_name("digits");
    report.mutable_registration()->set_job_uid(job_uid);
    report.mutable_registration()->set_pod_uid("pod");
    stream->Write(report);
    v1::OperatorNotice notice;
    if (stream->Read(&notice) && notice.has_accepted()) stream->WritesDone();
    return stream->Finish();
  }

  const tls::KeyPair authority_ =
      *tls::MakeAuthority(std::chrono::system_clock::now(), std::chrono::hours(24));
  support::TempDir temporary_;
  const std::filesystem::path dir_ = temporary_.path();
  controllers::SidecarRegistry registry_;
  controllers::QuorumRecordStore records_{
      std::make_shared<local::InMemoryApi>(std::make_shared<local::Store>(local::StoreOptions{}))};
  std::unique_ptr<OperatorIdentity> identity_;
  std::unique_ptr<OperatorLinkServer> server_;
};

TEST_F(OperatorLinkTlsTest, ASidecarSpeaksForTheJobOfItsCertificateOnly) {
  const auto stub = ClientOf("mine");
  EXPECT_TRUE(Register(stub.get(), "mine").ok());
  const grpc::Status refused = Register(stub.get(), "yours");
  EXPECT_FALSE(refused.ok());
  EXPECT_EQ(refused.error_message(),
            "job_uid is \"yours\", the certificate is for mine.job.ringmaster.dev");
  EXPECT_TRUE(registry_.Facts("yours").sidecars.empty());
}

TEST_F(OperatorLinkTlsTest, TheRecordOfAnotherJobIsNotToBeTouched) {
  const auto stub = ClientOf("mine");
  v1::RecordRequest request;
  request.set_job_namespace("default");
  request.set_job_name("digits");
  v1::RecordReply reply;
  const auto ask = [&](const std::string& job_uid) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    request.set_job_uid(job_uid);
    return stub->Record(&context, request, &reply).error_code();
  };
  EXPECT_EQ(ask("yours"), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(ask("mine"), grpc::StatusCode::INVALID_ARGUMENT) << "heard, and the message is empty";
  request.set_job_namespace("theirs");
  EXPECT_EQ(ask("mine"), grpc::StatusCode::UNAVAILABLE) << "the job of this uid is elsewhere";
}

TEST_F(OperatorLinkTlsTest, WhoHasNoCertificateIsNotHeard) {
  const auto stub = v1::OperatorLink::NewStub(
      grpc::CreateChannel(server_->target(), grpc::InsecureChannelCredentials()));
  EXPECT_FALSE(Register(stub.get(), "mine").ok());
  EXPECT_TRUE(registry_.Facts("mine").sidecars.empty());
}

TEST_F(OperatorLinkTlsTest, TheOperatorsCertificateIsRenewedWithItsKeyKept) {
  auto identity = OperatorIdentity::Create(authority_, std::chrono::seconds(2));
  ASSERT_TRUE(identity) << identity.error().message;
  const auto read = [](const std::string& path) {
    std::ifstream in(path);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const tls::Files& files = (*identity)->files();
  const std::string first = read(files.certificate), key = read(files.key);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (read(files.certificate) == first && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  EXPECT_NE(read(files.certificate), first);
  EXPECT_EQ(read(files.key), key);
}

}  // namespace
}  // namespace ringmaster::app
