// A scripted server and clients of it.
//
// Thread rule: one test's thread.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "operator/kube/kube_client.h"
#include "operator/kube/testing/scripted_server.h"
#include "tests/support/temp_dir.h"

namespace ringmaster::kube::testing {

inline Json StatusBody(int code, const std::string& reason, const std::string& message) {
  return {{"kind", "Status"},   {"apiVersion", "v1"}, {"status", "Failure"},
          {"message", message}, {"reason", reason},   {"code", code}};
}

inline std::string Object(const std::string& name) {
  return Json{{"kind", "ConfigMap"}, {"apiVersion", "v1"}, {"metadata", {{"name", name}}}}.dump();
}

class ClientFixture : public ::testing::Test {
 protected:
  void TearDown() override {
    client_.reset();
    server_.reset();
  }

  void Serve(ScriptedServer::Handler handler) { Serve({}, std::move(handler)); }
  void Serve(ScriptedServer::Options options, ScriptedServer::Handler handler) {
    if (options.certificate.cert_pem.empty()) options.certificate = authority_.Issue();
    server_ = std::make_unique<ScriptedServer>(options, std::move(handler));
  }

  // A configuration for the server and its authority, without a limit on calls.
  ClientConfig Config() const {
    ClientConfig config;
    config.host = "127.0.0.1";
    config.port = server_->port();
    config.ca_pem = authority_.pem();
    config.qps = 0;
    config.deadline = std::chrono::seconds(20);
    return config;
  }
  KubeApi& Client() { return Client(Config()); }
  KubeApi& Client(const ClientConfig& config) {
    auto client = MakeKubeClient(config);
    EXPECT_TRUE(client.has_value()) << client.error().message;
    client_ = std::move(*client);
    return *client_;
  }

  std::filesystem::path Write(const std::string& name, const std::string& text) const {
    // Replaces the file in one step, as a kubelet does with mounted files.
    std::ofstream(dir_ / (name + ".new")) << text;
    std::filesystem::rename(dir_ / (name + ".new"), dir_ / name);
    return dir_ / name;
  }
  std::filesystem::path Script(const std::string& name, const std::string& body) const {
    auto file = Write(name, "#!/bin/sh\n" + body);
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    return file;
  }

  // Returns the watch's end; `seen` gets the types and names of the events, as "ADDED a".
  Result<void> Watch(KubeApi& api, WatchOptions options, std::vector<std::string>* seen = nullptr) {
    if (options.resource_version.empty()) options.resource_version = "7";
    return api.Watch(ConfigMaps(), "ns", options,
                     [&](const WatchEvent& event) {
                       const char* kNames[] = {"ADDED", "MODIFIED", "DELETED", "BOOKMARK"};
                       if (seen) {
                         seen->push_back(kNames[static_cast<int>(event.type)] + std::string(" ") +
                                         event.object["metadata"].value("name", ""));
                       }
                       return true;
                     },
                     {});
  }
  static std::string Event(const std::string& type, const std::string& object) {
    return "{\"type\":\"" + type + "\",\"object\":" + object + "}\n";
  }
  static std::string ListPage(std::vector<std::string> names, const std::string& next) {
    Json items = Json::array();
    for (const std::string& name : names) items.push_back({{"metadata", {{"name", name}}}});
    return Json{{"kind", "ConfigMapList"},
                {"items", items},
                {"metadata", {{"resourceVersion", "7"}, {"continue", next}}}}
        .dump();
  }

  Authority authority_;
  support::TempDir temporary_;
  const std::filesystem::path dir_ = temporary_.path();
  std::unique_ptr<ScriptedServer> server_;
  std::unique_ptr<KubeApi> client_;
};

}  // namespace ringmaster::kube::testing
