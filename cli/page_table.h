// SPDX-License-Identifier: Apache-2.0
// Measurements of berthctl trial and blame, for the page of berthctl replay --report.
#pragma once

#include "cli/problem.h"
#include "replay/page.h"

#include <string>

namespace berth::cli {

// The table of a file of `trial --json` or `blame --json`; "-" reads standard input. Problem wrong_use where
// it is another one, or of more than 16 MiB.
Outcome<replay::PageTable> read_page_table(const std::string& file);

}  // namespace berth::cli
