// SPDX-License-Identifier: Apache-2.0
// The API server of Kubernetes, as berth-kube asks it.
#pragma once

#include <optional>
#include <string>

namespace berth::kubernetes {

// An answer, or the reason why there is none.
struct Answer {
  int status = 0;  // of HTTP; 0 without an answer
  std::string body;
  std::optional<double> retry_after_s;  // the server's wish

  // Without an answer: a word for its kind ("timeout", kTooLong), and the whole fault.
  std::string fault_kind;
  std::string fault;
};

// The kind of the fault for an answer of more than kMaxAnswerBytes.
inline constexpr const char* kTooLong = "length";

// Paths are absolute, with a query perhaps. Each request blocks, for a limited time.
class Api {
 public:
  Api() = default;
  virtual ~Api() = default;
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;

  // One JSON merge patch.
  virtual Answer patch(const std::string& path, const std::string& body) = 0;
  // Makes an object.
  virtual Answer create(const std::string& path, const std::string& body) = 0;
  // A list of objects, each with its metadata alone where the server can do that.
  virtual Answer list(const std::string& path) = 0;
};

}  // namespace berth::kubernetes
