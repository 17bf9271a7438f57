// SPDX-License-Identifier: Apache-2.0
// Progress as it is written outside of berth (docs/progress.md).
#pragma once

#include "model/error.h"

#include <string>
#include <string_view>

namespace berth::model {

// A decimal fraction from 0 to 1 ("0.42"), or DONE/TOTAL, numbers of at least 0, TOTAL above 0 and DONE not
// above it ("42/100"); blanks around it and around the slash are skipped. Error invalid_input, which does not
// repeat the text.
Result<double> parse_progress(std::string_view text);

// The path of a workload's progress file: `pattern` with the specifiers of systemd.unit(5) that a cgroup path
// can tell: %n its last component, %p that without a unit's suffix and instance, %i the instance, %% a
// percent sign. Error invalid_input where the pattern is not an absolute path, holds another specifier, a
// component
// "." or ".." (before or after), or a control character.
Result<std::string> expand_progress_file(std::string_view pattern, std::string_view cgroup_path);

}  // namespace berth::model
