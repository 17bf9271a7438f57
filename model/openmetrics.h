// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace berth::model {

// Metrics in Prometheus' text format 0.0.4, each family with its HELP before its TYPE, as OpenMetrics 1.0
// text (https://prometheus.io/docs/specs/om/open_metrics_spec/). Counters end with "_total"; a family has it
// only in its samples. Families in seconds, bytes and ratios say so.
std::string openmetrics_text(std::string_view text);

}  // namespace berth::model
