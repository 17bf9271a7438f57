// SPDX-License-Identifier: Apache-2.0
// Requests to `berthctl serve`: a head is refused, waited for or within its limits; a question is refused in
// one line, or asks for a sane amount. A snapshot is refused in one line, or its host counts with its memory.
#include "integrations/extender/documents.h"
#include "integrations/extender/fleet.h"
#include "integrations/extender/http_message.h"
#include "tests/fuzz/property.h"

#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = fuzz::text_of(data, size);
  const auto head = berth::extender::parse_head(text);
  if (!head) fuzz::require_line(head.error().message());
  if (head && *head) {
    fuzz::require((*head)->head_bytes <= berth::extender::kMaxHeadBytes && (*head)->head_bytes <= text.size(),
                  "a head has a limit");
    fuzz::require((*head)->path.find(' ') == std::string::npos, "a path is one word");
  }
  berth::extender::Fleet fleet{berth::extender::Fleet::Settings()};
  const auto taken = fleet.take(text, 0);
  if (!taken) fuzz::require_line(taken.error().message());
  fuzz::require(fleet.hosts() == (taken ? 1U : 0U), "a snapshot that is taken is of one host");
  fuzz::require(fleet.bytes() <= berth::extender::kMaxHostBytes, "a host's memory is limited");
  const auto question = berth::extender::parse_question(text, "berth.org");
  if (!question) {
    fuzz::require_line(question.error().message());
    return 0;
  }
  fuzz::require(question->nodes.size() <= berth::extender::kMaxNodes, "nodes are limited");
  if (const auto& request = question->pod.request) {
    fuzz::require(question->pod.uid.size() <= 63, "a UID is limited");
    fuzz::require(*request->vcpus >= 1 && *request->vcpus <= 100'000, "vCPUs are limited");
    fuzz::require(request->gpus >= 0 && request->gpus <= 100'000, "GPUs are limited");
  }
  return 0;
}
