// SPDX-License-Identifier: Apache-2.0
// Any text is read as a snapshot or refused in one line; what was read survives being written.
#include "model/json.h"
#include "tests/fuzz/property.h"

namespace model = berth::model;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto resolve = [](const model::TopologyReference&) { return model::Topology::make({model::Cpu{}}); };
  std::string text(fuzz::text_of(data, size));
  const auto parsed = model::parse_snapshot(text, resolve);
  // Samples that are not seen in passing are read the long way, to the same end.
  for (auto at = text.find("\"usage\""); at != std::string::npos; at = text.find("\"usage\"", at))
    text.replace(at, 7, "\"us\\u0061ge\"");
  const auto general = model::parse_snapshot(text, resolve);
  fuzz::require(parsed.has_value() == general.has_value(), "samples are read the same both ways");
  fuzz::require(!parsed || parsed->snapshot == general->snapshot, "and are the same");
  if (!parsed) {
    fuzz::require(parsed.error().kind() == model::ErrorKind::invalid_input, "kind of the refusal");
    fuzz::require(parsed.error().message().starts_with("$"), "a refusal names a JSON path");
    fuzz::require_line(parsed.error().message());
    return 0;
  }
  for (const std::string& warning : parsed->warnings) fuzz::require_line(warning);
  text = model::to_json(parsed->snapshot);
  const auto again = model::parse_snapshot(text);
  fuzz::require(again.has_value(), "what was written is read again");
  fuzz::require(again->warnings.empty(), "what was written has no unknown member");
  fuzz::require(again->snapshot == parsed->snapshot, "the snapshot survives");
  fuzz::require(model::to_json(again->snapshot) == text, "the same snapshot is the same text");
  return 0;
}
