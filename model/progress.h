// SPDX-License-Identifier: Apache-2.0
// Progress as it is written outside of berth (docs/progress.md).
#pragma once

#include "model/error.h"

#include <string>
#include <string_view>

namespace berth::model {

// Parses a decimal fraction from 0 to 1 ("0.42"), or DONE/TOTAL ("42/100"). DONE is at least 0, TOTAL above
// 0, and DONE at most TOTAL. Blanks around it and around the slash are skipped. Error invalid_input; its
// message does not repeat the text.
Result<double> parse_progress(std::string_view text);

// Returns the path of a workload's progress file. `pattern` may have the specifiers of systemd.unit(5) that a
// cgroup path can tell. %n is its last component, and %p that without a unit's suffix and instance. %i is the
// instance, %% a percent sign. Error invalid_input where the pattern is not an absolute path or holds another
// specifier. So it is for a component "." or ".." (before or after expanding), and for a control character.
Result<std::string> expand_progress_file(std::string_view pattern, std::string_view cgroup_path);

}  // namespace berth::model
