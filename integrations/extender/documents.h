// SPDX-License-Identifier: Apache-2.0
// The questions of kube-scheduler to an extender, and the answers. A document has limits, as every program of
// this host may connect.
#pragma once

#include "model/error.h"
#include "model/snapshot.h"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::extender {

inline constexpr std::size_t kMaxNodes = 20'000;
// A question has a name for each node, and one pod. More JSON values are refused: each takes up to 400 bytes.
inline constexpr std::size_t kMaxQuestionValues = 100'000;

// A pod, as far as berth judges it.
struct Pod {
  std::string uid;
  // nullopt for a pod that berth does not place: it neither is best-effort work, nor gets vCPUs or GPUs of
  // its own.
  std::optional<model::PendingWorkload> request;
};

struct Question {
  Pod pod;
  std::vector<std::string> nodes;
};

// Reads the scheduler's arguments. `domain` is that of be-cpu and be-memory. Error invalid_input with the
// JSON path, also where whole nodes come in place of their names.
model::Result<Question> parse_question(std::string_view text, const std::string& domain);

struct Filtered {
  std::vector<std::string> passed;
  std::map<std::string, std::string> failed;  // by node, the reason
};

// A node's points, 0 to 10.
struct Points {
  std::string node;
  int score = 0;
};

std::string to_json(const Filtered& filtered);
std::string to_json(const std::vector<Points>& points);
// The answer to a question that cannot be read.
std::string error_json(const std::string& message);

// An amount as Kubernetes writes it, from 0 to 16Ei: "2", "1500m", "1.5", "64Gi", "8k", "1e3". nullopt for
// anything else.
std::optional<double> parse_quantity(std::string_view text);

}  // namespace berth::extender
