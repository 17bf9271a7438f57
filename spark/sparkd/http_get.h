// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace berth::spark {

struct HttpLimits {
  std::chrono::milliseconds connect{500};
  std::chrono::milliseconds whole{3000};  // from the first byte asked to the last one read
  std::size_t body_bytes = std::size_t{8} << 20;
};

// The obstacle behind an answer that is no 200, and the setting of Spark that helps: "status 302 to LOCATION:
// ...". It names YARN's proxy filter, TLS and a password. `location`: of a redirect, empty for any other
// answer; the server wrote it, and only its first 120 bytes are repeated.
std::string text_of_refusal(long status, std::string_view location);

// Plain HTTP with one kept connection per server, for one thread. Follows no redirect, asks no proxy, speaks
// nothing but http.
class HttpClient {
 public:
  explicit HttpClient(HttpLimits limits = {});
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Returns the body of a 200. Blocks.
  // Errors: `refused` for any other status, with text_of_refusal() in the message. `gone`
  // where no server answers. `transient` where it took too long. `invalid_input` for a body beyond its limit.
  // `io` for the rest.
  model::Result<std::string> get(const std::string& url);

  struct State;

 private:
  model::Result<void> open();

  std::unique_ptr<State> state_;
};

}  // namespace berth::spark
