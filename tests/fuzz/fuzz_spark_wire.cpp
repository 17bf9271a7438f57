// SPDX-License-Identifier: Apache-2.0
// Any bytes on berth-sparkd's socket are refused, or are a message that reads the same when it is sent again.
// First byte: which message.
#include "spark/wire.h"
#include "tests/fuzz/property.h"

using namespace berth::spark;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes = fuzz::text_of(data + 1, size - 1);
  constexpr std::size_t kMost = std::size_t{1} << 20;
  switch (data[0] % 5) {
    case 0:
      if (const auto question = wire::decode_question(bytes))
        fuzz::require(wire::decode_question(wire::encode(*question)) == *question, "a question stays");
      break;
    case 1:
      if (const auto open = wire::decode_open(bytes))
        fuzz::require(wire::decode_open(wire::encode(*open)) == *open, "a path stays");
      break;
    case 2:
      if (const auto opened = wire::decode_opened(bytes))
        fuzz::require(wire::decode_opened(wire::encode(*opened)).has_value(), "a reason stays");
      break;
    case 3: {
      std::size_t most_bytes = kMost;
      if (const auto facts = wire::decode_facts(bytes, most_bytes)) {
        std::size_t same_bytes = kMost;
        const auto again = wire::decode_facts(wire::encode(*facts), same_bytes);
        fuzz::require(again == *facts, "facts stay");
        fuzz::require(most_bytes == same_bytes || !facts->problems.empty(), "they take the same memory");
        for (const auto& problem : facts->problems)
          for (const char c : problem) fuzz::require(c < 0 || c >= ' ', "a problem is one line");
      } else {
        fuzz::require(most_bytes == kMost, "what is refused takes nothing");
      }
      break;
    }
    default:
      (void)wire::decode_done(bytes);
  }
  return 0;
}
