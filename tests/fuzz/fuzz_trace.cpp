// SPDX-License-Identifier: Apache-2.0
// Any bytes are read as a trace or refused in one line, within the limits, and its ticks can be replayed.
// Each observation of them is one that fit reads. Bytes that are no zstd frame are the lines of a trace, so
// that the fuzzer reaches them.
#include "model/learning.h"
#include "replay/observed.h"
#include "replay/page.h"
#include "replay/side.h"
#include "tests/fuzz/property.h"
#include "trace/reader.h"

#include <algorithm>
#include <cstring>
#include <string>

#include <zstd.h>

namespace trace = berth::trace;

namespace {

constexpr std::string_view kMagic = "\x28\xb5\x2f\xfd";
// A replay of more would be slow under the sanitizers.
constexpr std::size_t kMostReplayed = 8;

std::string compressed(std::string_view text) {
  std::string bytes(ZSTD_compressBound(text.size()), '\0');
  bytes.resize(ZSTD_compress(bytes.data(), bytes.size(), text.data(), text.size(), 1));
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  const std::string bytes = text.starts_with(kMagic) ? std::string(text) : compressed(text);
  trace::Limits limits;
  limits.line_bytes = 100'000;
  limits.text_bytes = 1'000'000;
  limits.workloads = 30;
  limits.samples = 1000;
  limits.ticks = 50;
  std::size_t at = 0;
  auto reader = trace::Reader::open(
      [&](char* buffer, std::size_t most) {
        const std::size_t count = std::min(most, bytes.size() - at);
        std::memcpy(buffer, bytes.data() + at, count);
        at += count;
        return berth::model::Result<std::size_t>(count);
      },
      limits);
  if (!reader) {
    fuzz::require_line(reader.error().message());
    return 0;
  }
  berth::replay::Side side{{}};
  berth::replay::Observed observed;
  std::size_t replayed = 0;
  double before = -1;
  while (reader->next()) {
    const auto& snapshot = reader->snapshot();
    fuzz::require(snapshot.time > before, "times ascend");
    before = snapshot.time;
    fuzz::require(snapshot.workloads.size() <= limits.workloads, "workloads are limited");
    fuzz::require(reader->ticks() <= limits.ticks, "ticks are limited");
    const bool ascends =
        std::is_sorted(snapshot.workloads.begin(), snapshot.workloads.end(),
                       [](const auto& a, const auto& b) { return a.id <= b.id && a.id != b.id; });
    fuzz::require(ascends, "workloads ascend by id");
    for (const auto& seen : observed.take(snapshot, berth::model::DomainKind::llc))
      fuzz::require(berth::model::parse_observation(berth::model::to_json(seen)).has_value(), "fit reads it");
    if (replayed++ < kMostReplayed && snapshot.topology.all().size() <= 64) side.step(snapshot);
  }
  if (reader->cut()) fuzz::require_line(*reader->cut());
  for (const std::string& lack : observed.lacks()) fuzz::require(!lack.empty(), "a reason has words");
  side.finish();
  if (side.figures().ticks == 0) return 0;
  berth::replay::Page page;
  page.host = reader->header().host;
  page.topology = &reader->snapshot().topology;
  page.ended = before;
  page.ticks = side.figures().ticks;
  page.sides = {{"", &side.figures(), &side.history()}};
  const std::string html = berth::replay::page_html(page);
  fuzz::require(html.find("<script") == std::string::npos, "a page runs nothing");
  return 0;
}
