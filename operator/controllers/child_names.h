// What the objects are called that a job has beside its pods (child_object_builder.h). Pure.
#pragma once

#include <string>

namespace ringmaster::controllers {

// A Service's name has to begin with a letter, a job's may begin with a digit.
std::string ServiceName(const std::string& job);
std::string TlsSecretName(const std::string& job);
std::string BudgetName(const std::string& job);
std::string PolicyName(const std::string& job);

}  // namespace ringmaster::controllers
