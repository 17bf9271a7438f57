// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/text.h"
#include "model/topology.h"

#include <map>
#include <string>

namespace berth::cli {

// The processors of a large host on few lines: each LLC domain's vCPUs as one character each, ascending. '0'
// to '9' are the tenths of time that it is busy, '?' is unknown. 'x' is offline, '!' is a vCPU that berth may
// not use. `use` is a share 0..1. With `owners`, by vCPU, a line below has a letter for the owner of each
// vCPU,
// '.' for none, and the last line names the owners; one that has no letter left is '#'.
std::string render_vcpu_map(const model::Topology& topology, const std::map<int, double>& use,
                            const Style& style, const std::map<int, std::string>& owners = {});

}  // namespace berth::cli
