// SPDX-License-Identifier: Apache-2.0
// Renders the daemon's documents (docs/contract) as text. Other files fetch them.
#pragma once

#include "cli/document.h"
#include "cli/text.h"

#include <cstddef>
#include <iosfwd>
#include <string>

namespace berth::cli {

// Printed instead of an empty table.
inline constexpr const char* kNoWorkloads =
    "No workloads: no rule, mark or QoS class makes one; see [[workload]] in berth.toml(5).";

// berth.status/1; `now` in epoch seconds, for ages.
void render_status(std::ostream& out, const Document& status, double now, const Style& style);
// Three lines say what berth sees, what it would do, and the next command. `plan` is berth.plan/1, null where
// it was not asked for; 0 `cpus` are not known.
void render_outlook(std::ostream& out, const Document& status, const Document& plan, std::size_t cpus,
                    const Style& style);
// berth.workloads/1.
void render_list(std::ostream& out, const Document& workloads, const Style& style);
// berth.log/1, and the entries of a status.
void render_log(std::ostream& out, const Document::array_t& entries, const Style& style,
                const char* indent = "");
// berth.explain/1.
void render_explanation(std::ostream& out, const Document& explanation, const Style& style);
// berth.blame/1 of one period, with the member `seconds`.
void render_blame(std::ostream& out, const Document& blame, const Style& style);
// The name of an element of its `culprits[]`, or words in its place. Not yet printable.
std::string culprit_text(const Document& culprit);
// berth.restore/1.
void render_restore(std::ostream& out, const Document& report, const Style& style);

// An entry of berth.log/1, or a news of berth.watch/1, as a sentence without a full stop: the decision and
// its outcome, without the reason. A kind that is not known is told by its members. The text may have any
// characters.
std::string sentence_of(const Document& entry);

// Draws learned interference models (a berth.models/1 document).

// A table, one line a service and response; below it why each model is used or not.
void render_models(std::ostream& out, const Document& models, const Style& style);
// All that is known of one service; false where there is nothing.
bool render_service_models(std::ostream& out, const Document& models, const std::string& service,
                           const Style& style);

// Joins a berth.workloads/1 and a berth.models/1 document: a berth.models-in-use/1 document, with each
// service that has latency-sensitive workloads, their number, and the model that it uses. None uses one where
// `learns` (interference.learn) is false.
Document models_in_use(const Document& workloads, const Document& models, bool learns);
void render_models_in_use(std::ostream& out, const Document& used, const Style& style);

}  // namespace berth::cli
