// A HorovodJob as a user writes it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/api/horovod_job.h"

namespace ringmaster::api::testing {

inline nlohmann::json JobObject(const std::string& name, int replicas, int min_replicas = 1,
                                const std::vector<std::string>& command = {"train"}) {
  return {{"apiVersion", kApiVersion},
          {"kind", kKind},
          {"metadata", {{"name", name}}},
          {"spec",
           {{"elasticPolicy", {{"minReplicas", min_replicas}, {"maxReplicas", 8}}},
            {"worker",
             {{"replicas", replicas},
              {"template",
               {{"spec",
                 {{"containers",
                   {{{"name", "worker"}, {"image", "any"}, {"command", command}}}}}}}}}}}}};
}

}  // namespace ringmaster::api::testing
