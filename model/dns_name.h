// SPDX-License-Identifier: Apache-2.0
// Names of objects and resources in Kubernetes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace berth::model {

// Why `name` cannot be a DNS subdomain (RFC 1123), as names of nodes and domains are: small letters, digits,
// hyphens and dots, 253 bytes at most. nullopt for a good name.
std::optional<std::string> why_no_subdomain(std::string_view name);

// Why extended resources and taints cannot have this domain, as in "berth.org/be-cpu". nullopt for a good
// one. It is a subdomain that Kubernetes does not keep for itself. Kubernetes takes each resource whose
// domain ends with kubernetes.io for its own. In quotas it writes "requests." before the name, so the domain
// is shorter than 253 bytes and does not begin with that (IsExtendedResourceName in its
// pkg/apis/core/v1/helper/helpers.go).
std::optional<std::string> why_no_resource_domain(std::string_view domain);

}  // namespace berth::model
