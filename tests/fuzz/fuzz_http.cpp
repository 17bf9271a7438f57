// SPDX-License-Identifier: Apache-2.0
// A request of a metrics client that comes in pieces: a judgement stands, whatever comes later, and a request
// of the longest length has one.
#include "daemon/serve/http.h"
#include "tests/fuzz/property.h"

#include <optional>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth::daemon;
  const std::string_view text = fuzz::text_of(data, size);
  std::optional<HttpStatus> judged;
  const std::size_t step = 1 + size / 64;
  for (std::size_t length = 0; length <= text.size(); length += step) {
    const auto status = judge_request(text.substr(0, length), "/metrics");
    if (judged) fuzz::require(status == judged, "a judgement stands");
    judged = status;
  }
  const auto whole = judge_request(text, "/metrics");
  fuzz::require(whole || text.size() < kMaxRequestBytes, "a request that is too long is judged");
  if (!whole) return 0;
  const auto response = http_response(*whole, "text/plain", "body", wants_body(text));
  fuzz::require(response.starts_with("HTTP/1.1 "), "each judgement has a response");
  return 0;
}
