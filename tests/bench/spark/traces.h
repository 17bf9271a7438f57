// SPDX-License-Identifier: Apache-2.0
// Traces of memory to judge forecasts by: families of shapes with noise, each from a seed.
#pragma once

#include "model/memory_series.h"

#include <cstdint>
#include <string>
#include <vector>

namespace berth::bench {

// One shape of demand, with the lines that it is judged against, in bytes.
struct Trace {
  std::vector<model::MemoryReading> demand;
  std::vector<double> lines;
};

// Names of the families that trace_of() makes.
const std::vector<std::string>& families();
// The same name and seed give the same trace everywhere. Readings are a second apart.
Trace trace_of(const std::string& family, std::uint64_t seed);
// A recording, with lines inside and outside of its range.
Trace recorded_trace(std::vector<model::MemoryReading> demand);

}  // namespace berth::bench
