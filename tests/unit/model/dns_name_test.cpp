// SPDX-License-Identifier: Apache-2.0
#include "model/dns_name.h"

#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::model {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

TEST(DnsName, SubdomainsHaveSmallLettersDigitsHyphensAndDots) {
  for (const char* good : {"n1", "a", "worker-0.eu.example.org", "1a"})
    EXPECT_EQ(why_no_subdomain(good), std::nullopt) << good;
  for (const char* bad : {"", "N1", "a_b", "-a", "a-", ".a", "a..b", "a/b", "../x", "a b", "ä"})
    EXPECT_NE(why_no_subdomain(bad), std::nullopt) << bad;
  EXPECT_EQ(why_no_subdomain(std::string(253, 'a')), std::nullopt);
  EXPECT_NE(why_no_subdomain(std::string(254, 'a')), std::nullopt);
}

TEST(DnsName, ADomainOfResourcesIsNoneOfKubernetes) {
  for (const char* good : {"berth.org", "kubernetes.io.example.org", "k8s.io.org", "myk8s.io", "requests"})
    EXPECT_EQ(why_no_resource_domain(good), std::nullopt) << good;
  for (const char* kept : {"kubernetes.io", "node.kubernetes.io", "mykubernetes.io", "k8s.io", "node.k8s.io"})
    EXPECT_THAT(why_no_resource_domain(kept), Optional(HasSubstr("Kubernetes keeps this domain"))) << kept;
  EXPECT_THAT(why_no_resource_domain("requests.example.org"), Optional(HasSubstr("for quotas")));
  EXPECT_EQ(why_no_resource_domain(std::string(244, 'a')), std::nullopt);
  EXPECT_THAT(why_no_resource_domain(std::string(245, 'a')), Optional(HasSubstr("longer than 244 bytes")));
  for (const char* bad : {"", "a/b", "Berth.org"})
    EXPECT_EQ(why_no_resource_domain(bad), why_no_subdomain(bad)) << bad;
}

}  // namespace
}  // namespace berth::model
