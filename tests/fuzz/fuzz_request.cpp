// SPDX-License-Identifier: Apache-2.0
// Work that any user may ask to have admitted: a request is refused in one line, or is within its limits.
#include "model/json.h"
#include "tests/fuzz/property.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto request = berth::model::parse_request(fuzz::text_of(data, size));
  if (!request) {
    fuzz::require_line(request.error().message());
    return 0;
  }
  fuzz::require(!request->request.id.empty(), "work has an id");
  return 0;
}
