// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

export { type Admission, admit } from "./admit.ts";
export { openAuditCheckpoint, signAuditCheckpoint } from "./audit-checkpoint.ts";
export {
  readVouchedCertificate,
  signCertificate,
  signRetirement,
  verifyCertificate,
  verifyRetirement,
} from "./certificate.ts";
export { type VerifiedChain, verifyChain } from "./chain.ts";
export {
  type ChainExport,
  chainExportLimit,
  chainExportToText,
  type LinkSigner,
  parseChainExport,
  type VerifiedExport,
  verifyChainExport,
} from "./chain-export.ts";
export { type ChainHead, signChainHead, verifyChainHead } from "./chain-head.ts";
export { type CertificateBreak, type ChainLink, chainLinksLimit } from "./chain-links.ts";
export type { ManifestBreak } from "./chain-manifests.ts";
export { certificateDigest, manifestDigest, recordSetDigest, routeDigest } from "./digest.ts";
export { signHandOverGrant, verifyHandOverGrant } from "./hand-over-grant.ts";
export { CapabilityIssuer, type CapabilityRequest, type IssuerOptions } from "./issuer.ts";
export { claimedKeyId, type KeyFinder, type KeyHolder, type OpenedToken, type TokenRefusal } from "./jws.ts";
export { archiveBundlesLimit, KeyArchive } from "./key-archive.ts";
export { type BundledKey, bundleKeysLimit, type KeyBundle, KeyRing, signKeyBundle } from "./key-ring.ts";
export {
  exportSigningKey,
  importPublicKey,
  importSigningKey,
  keyId,
  newSigningKey,
  parsePublicKey,
  publicKeyText,
  type SigningKey,
} from "./keys.ts";
export { signLease, verifyLease } from "./lease.ts";
export {
  countersignManifest,
  manifestLimitBytes,
  readStoredManifest,
  readVouchedManifest,
  signManifest,
  verifyCountersigned,
  verifyManifest,
} from "./manifest.ts";
export { signOriginGrant, verifyOriginGrant } from "./origin-grant.ts";
export { type ReadObject, SealedChains, type SealedChainsOptions } from "./sealed-chains.ts";
export { type SealedEnd, verifySealedManifest } from "./sealed-links.ts";
export {
  parseSealedObject,
  type SealedChainObject,
  type SealedLink,
  sealedObjectDigest,
  sealedObjectToBytes,
  sealedSegmentLimitBytes,
} from "./sealed-segment.ts";
export { TrustedKeys, type TrustedKeysOptions } from "./trusted-keys.ts";
export {
  type CapabilityVerification,
  CapabilityVerifier,
  defaultMemoryLimit,
  greatestMemoryLimit,
  type VerifiedCapability,
  type VerifierOptions,
} from "./verifier.ts";
