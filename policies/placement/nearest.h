// SPDX-License-Identifier: Apache-2.0
// Finds, of several equal things, those that are nearest to each other: GPUs, by their links
// (docs/decisions/placement.md, links of GPUs).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace berth::policies {

// Up to so many sets are compared one by one: all sets of 16.
inline constexpr std::uint64_t kMostNearestSets = 20'000;
// Of more things, the first ones are looked at.
inline constexpr std::size_t kMostNearest = 64;

// The number of sets of `size` of `things`; `most` + 1 where there are more than `most`.
std::uint64_t sets_of(std::size_t things, std::size_t size, std::uint64_t most);

// How far things `a` and `b` are from each other, a != b; symmetric, 0 or more. Its sums must fit an int.
using DistanceOf = std::function<int(std::size_t a, std::size_t b)>;

// Chooses `count` of the things 0 to `things` - 1 whose sum is least: the distances between all chosen, and
// from each chosen to the things that are taken already. `to_taken` has this distance for each thing. Of
// equal sets it chooses the first by the order of the things. It compares all sets up to kMostNearestSets of
// them. Beyond, it grows a set from each thing by the nearest one, and the result may not be the best. Of
// more than kMostNearest things it looks at the first ones alone, or at the first `count` if these are more.
// Returns ascending numbers; all things where `count` is `things` or more.
std::vector<std::size_t> nearest(std::size_t things, std::size_t count, const DistanceOf& distance,
                                 const std::vector<int>& to_taken);

}  // namespace berth::policies
