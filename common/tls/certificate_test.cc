#include "common/tls/certificate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringmaster::tls {
namespace {

using std::chrono::hours;
using testing::ElementsAre;
using testing::HasSubstr;

class CertificateTest : public testing::Test {
 protected:
  KeyPair IssueFor(const std::string& name, Time now, hours lifetime = hours(24)) {
    auto issued = Issue(authority_, {name}, now, lifetime);
    EXPECT_TRUE(issued) << issued.error();
    return *issued;
  }
  std::string Why(const KeyPair& pair, Time now, Role role = Role::kClient) {
    return WhyNotTrusted(authority_.certificate_pem, pair.certificate_pem, "", role, now);
  }

  const Time now_ = std::chrono::system_clock::now();
  const KeyPair authority_ = *MakeAuthority(now_, hours(24 * 3650));
};

TEST_F(CertificateTest, AnIssuedOneIsTrustedForBothRolesAndNamesItsJob) {
  const KeyPair pair = IssueFor(JobName("uid-1"), now_);
  EXPECT_EQ(Why(pair, now_), "");
  EXPECT_EQ(Why(pair, now_, Role::kServer), "");
  EXPECT_TRUE(KeyFits(pair));
  const auto info = ReadCertificate(pair.certificate_pem);
  ASSERT_TRUE(info) << info.error();
  EXPECT_THAT(info->dns_names, ElementsAre("uid-1.job.ringmaster.dev"));
  EXPECT_EQ(std::chrono::floor<std::chrono::seconds>(now_ + hours(24)), info->not_after);
  EXPECT_EQ(std::chrono::floor<std::chrono::seconds>(now_ - kClockSkew), info->not_before);
}

TEST_F(CertificateTest, WhyOneIsRefusedIsSaid) {
  const KeyPair pair = IssueFor("a", now_);
  EXPECT_THAT(Why(pair, now_ + hours(25)), HasSubstr("it expired at 20"));
  EXPECT_THAT(Why(pair, now_ - hours(2)), HasSubstr("it is not valid before 20"));
  const auto other = MakeAuthority(now_, hours(24));
  const auto stranger = Issue(*other, {"a"}, now_, hours(24));
  ASSERT_TRUE(stranger);
  EXPECT_EQ(Why(*stranger, now_), "it was signed by another authority");
  EXPECT_EQ(Why(*other, now_), "it was signed by another authority") << "self-signed";
  EXPECT_EQ(Why({}, now_), "it has none");
  EXPECT_EQ(WhyNotTrusted("", pair.certificate_pem, "", Role::kClient, now_),
            "we have no authority's certificate ourselves");
}

TEST_F(CertificateTest, AJobsCertificateSignsNothing) {
  const KeyPair job = IssueFor(JobName("mine"), now_);
  const auto forged = Issue(job, {JobName("yours")}, now_, hours(24));
  ASSERT_TRUE(forged) << forged.error();
  EXPECT_NE(WhyNotTrusted(authority_.certificate_pem, forged->certificate_pem, job.certificate_pem,
                          Role::kClient, now_),
            "");
}

TEST_F(CertificateTest, TwoAuthoritiesAreTrustedWhileOneTakesTheOthersPlace) {
  const auto next = MakeAuthority(now_, hours(24));
  const auto issued = Issue(*next, {"a"}, now_, hours(24));
  ASSERT_TRUE(issued);
  EXPECT_EQ(WhyNotTrusted(authority_.certificate_pem + next->certificate_pem,
                          issued->certificate_pem, "", Role::kServer, now_),
            "");
}

TEST_F(CertificateTest, AKeyThatIsKeptFitsTheNewCertificate) {
  const KeyPair first = IssueFor("a", now_);
  const auto second = Issue(authority_, {"a"}, now_ + hours(12), hours(24), first.key_pem);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->key_pem, first.key_pem);
  EXPECT_NE(second->certificate_pem, first.certificate_pem);
  EXPECT_TRUE(KeyFits(*second));
  EXPECT_FALSE(KeyFits({first.certificate_pem, IssueFor("a", now_).key_pem}));
}

TEST_F(CertificateTest, OneThatNeverEndsIsValidFromItsDayOn) {
  // Valid until the year 9966.
  const auto info = ReadCertificate(R"(-----BEGIN CERTIFICATE-----
MIIBbjCCARWgAwIBAgIUYRXhoZ9M9ngU5GwdUo/2JLfDdFYwCgYIKoZIzj0EAwIw
DDEKMAgGA1UEAwwBeDAgFw0yNjExMjIyMjAyMThaGA85OTY2MTAyODIyMDIxOFow
DDEKMAgGA1UEAwwBeDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABJaq2vi899Tw
yCp/3tca5+4Zrvx3JQQA+mh2vC+cxcJB20pISPYrb7vDoEqyfdp53pBmP390JkRX
X+wnM9gVwSOjUzBRMB0GA1UdDgQWBBQIOqOiFSGXjBXF5SU/wtk7GO7uWDAfBgNV
HSMEGDAWgBQIOqOiFSGXjBXF5SU/wtk7GO7uWDAPBgNVHRMBAf8EBTADAQH/MAoG
CCqGSM49BAMCA0cAMEQCIA0fAiG9/StTvGin3kBFar7sflgbG+WWNMarNUDy59AD
AiBL+SXkv9DQsMJlDYnC9uK/PpHdAxKbaLLhqjNAp+LNwA==
-----END CERTIFICATE-----
)");
  ASSERT_TRUE(info.has_value()) << info.error();
  EXPECT_GT(info->not_after, info->not_before);
}

TEST_F(CertificateTest, NonsenseIsAnErrorAndNotACrash) {
  EXPECT_FALSE(ReadCertificate("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"));
  EXPECT_FALSE(ReadCertificate(""));
  EXPECT_FALSE(KeyFits({"x", "y"}));
  EXPECT_FALSE(Issue({"x", "y"}, {"a"}, now_, hours(1)));
  EXPECT_FALSE(Issue(authority_, {"a"}, now_, hours(1), "no key"));
  EXPECT_EQ(WhyNotTrusted("x", "y", "z", Role::kClient, now_), "it has none");
}

}  // namespace
}  // namespace ringmaster::tls
