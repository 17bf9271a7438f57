// SPDX-License-Identifier: Apache-2.0
// Renders the daemon's documents (docs/contract) as text. Other files fetch them.
#pragma once

#include "cli/document.h"
#include "cli/text.h"

#include <cstddef>
#include <iosfwd>

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
// berth.restore/1.
void render_restore(std::ostream& out, const Document& report, const Style& style);

}  // namespace berth::cli
