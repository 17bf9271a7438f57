// SPDX-License-Identifier: Apache-2.0
// Draws learned interference models (a berth.models/1 document).
#pragma once

#include "cli/document.h"
#include "cli/text.h"

#include <iosfwd>
#include <string>

namespace berth::cli {

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
