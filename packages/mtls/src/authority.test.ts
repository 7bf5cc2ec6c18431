// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { createHash, createPrivateKey, createPublicKey, X509Certificate } from "node:crypto";
import { describe, it } from "node:test";
import { inspect } from "node:util";

import { isSpaceError } from "@space/model";

import { certifyPeer, createAuthority, issueClient, issuePeer, issueServer, newTlsKey } from "./authority.ts";
import { thumbprint } from "./thumbprint.ts";

const nowMs = Date.UTC(2026, 10, 30, 12);
const authority = createAuthority({ commonName: "test authority", nowMs });
const invalid = (error: unknown): boolean => isSpaceError(error, "input/invalid");

describe("an authority", () => {
  it("is a P-256 certificate that OpenSSL reads, signed by itself, for signing leaves only", () => {
    const certificate = new X509Certificate(authority.certificate);
    assert.equal(certificate.ca, true);
    assert.equal(certificate.subject, "CN=test authority");
    assert.equal(certificate.verify(certificate.publicKey), true);
    assert.equal(certificate.publicKey.asymmetricKeyDetails?.namedCurve, "prime256v1");
    assert.equal(certificate.checkPrivateKey(createPrivateKey(authority.key.reveal())), true);
  });

  it("does not show its key when printed", () => {
    assert.doesNotMatch(inspect(authority) + JSON.stringify(authority), /PRIVATE/);
  });

  it("refuses a name that no certificate can carry", () => {
    for (const commonName of ["", "x".repeat(65), "two\nlines", "näme"]) {
      assert.throws(() => createAuthority({ commonName, nowMs }), invalid);
    }
  });
});

describe("issuing", () => {
  it("vouches for DNS names, wildcards and addresses of both families", () => {
    const names = ["space.test", "*.space.test", "127.0.0.1", "::1", "fd00::12:3"];
    const identity = issueServer(authority, { commonName: "space.test", names, nowMs });
    const certificate = new X509Certificate(identity.certificate);
    assert.equal(certificate.verify(new X509Certificate(authority.certificate).publicKey), true);
    assert.equal(certificate.checkHost("49983-i0.space.test"), "*.space.test");
    assert.equal(certificate.checkHost("a.b.space.test"), undefined);
    assert.equal(certificate.checkIP("127.0.0.1"), "127.0.0.1");
    assert.equal(certificate.checkIP("::1"), "::1");
    assert.equal(certificate.checkIP("fd00::12:3"), "fd00::12:3");
    assert.equal(certificate.ca, false);
  });

  it("gives each kind of holder its own use", () => {
    const uses = (issue: typeof issuePeer): unknown =>
      new X509Certificate(issue(authority, { commonName: "x", nowMs }).certificate).keyUsage;
    assert.deepEqual(uses(issueServer), ["1.3.6.1.5.5.7.3.1"]);
    assert.deepEqual(uses(issueClient), ["1.3.6.1.5.5.7.3.2"]);
    assert.deepEqual(uses(issuePeer), ["1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.2"]);
  });

  it("begins an hour back and ends after the days asked for, 825 at most", () => {
    const { certificate } = issuePeer(authority, { commonName: "x", nowMs, days: 825 });
    const { validFromDate, validToDate } = new X509Certificate(certificate);
    assert.equal(validFromDate.getTime(), nowMs - 3_600_000);
    assert.equal(validToDate.getTime(), nowMs + 825 * 86_400_000);
    for (const days of [826, 0, -1, Number.NaN]) {
      assert.throws(() => issuePeer(authority, { commonName: "x", nowMs, days }), invalid);
    }
  });

  it("writes dates from 2050 on in the long form", () => {
    const late = Date.UTC(2049, 11, 31, 23, 59, 59);
    const { certificate } = issuePeer(authority, { commonName: "x", nowMs: late, days: 1 });
    assert.equal(new X509Certificate(certificate).validToDate.getTime(), late + 86_400_000);
  });

  it("never uses a serial number twice", () => {
    const serial = (): string =>
      new X509Certificate(issuePeer(authority, { commonName: "x", nowMs }).certificate).serialNumber;
    assert.notEqual(serial(), serial());
  });

  it("refuses a name that is neither an address nor a DNS name", () => {
    for (const name of [
      "",
      "UPPER.test",
      "a b",
      "*",
      "a.*.b",
      "https://x",
      "::ffff:1.2.3.4",
      "x".repeat(64),
    ]) {
      assert.throws(() => issueServer(authority, { commonName: "x", names: [name], nowMs }), invalid, name);
    }
  });

  it("certifies a key that its component keeps to itself", () => {
    const { key, publicKey } = newTlsKey();
    const certificate = new X509Certificate(
      certifyPeer(authority, publicKey, { commonName: "wrk_a", nowMs }),
    );
    assert.equal(certificate.checkPrivateKey(createPrivateKey(key.reveal())), true);
    assert.equal(certificate.subject, "CN=wrk_a");
  });

  it("refuses to certify anything but a P-256 public key", () => {
    const { key } = newTlsKey();
    for (const text of ["", "rubbish", key.reveal()]) {
      assert.throws(() => certifyPeer(authority, text, { commonName: "x", nowMs }), invalid);
    }
  });
});

describe("a thumbprint", () => {
  it("is the base64url SHA-256 of the DER, from PEM and DER alike", () => {
    //
    const { certificate, thumbprint: own } = issuePeer(authority, { commonName: "x", nowMs });
    const der = new X509Certificate(certificate).raw;
    assert.equal(own, createHash("sha256").update(der).digest("base64url"));
    assert.equal(thumbprint(certificate), own);
    assert.equal(thumbprint(der), own);
  });

  it("is refused for what is not a certificate", () => {
    const spki = createPublicKey(authority.certificate).export({ type: "spki", format: "pem" });
    for (const bad of ["", "rubbish", spki]) assert.throws(() => thumbprint(bad), invalid);
  });
});
