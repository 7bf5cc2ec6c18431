// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  CapabilityIssuer,
  type CapabilityRequest,
  certificateDigest,
  countersignManifest,
  KeyRing,
  publicKeyText,
  type SigningKey,
  signCertificate,
  signKeyBundle,
  signRetirement,
} from "@space/capability";
import {
  type CapabilityClaims,
  type Clock,
  type Digest,
  type ExecutionIdentity,
  type InstallationStore,
  type PublishedCertificate,
  type Random,
  type Secret,
  SpaceError,
  type StoredKeyBundle,
} from "@space/model";

/** What only the control plane holds. */
export interface InstallationKeys {
  /** signs the bundles of verification keys. */
  readonly root: SigningKey;
  /** Signs capabilities, certificates, retirements and countersigns manifests. */
  readonly signing: SigningKey;
  /** From which each sandbox's access token is derived. */
  readonly tokenSecret: Secret<Uint8Array>;
}

export interface SignerOptions {
  /** Names the installation in what it signs. */
  readonly issuer: string;
  readonly keys: InstallationKeys;
  readonly clock: Clock;
  readonly random: Random;
}

/** The one module that reaches the signing key. */
export class Signer {
  readonly #options: SignerOptions;
  readonly #issuer: CapabilityIssuer;
  /** what workers verify with. */
  readonly bundle: StoredKeyBundle;
  readonly ring: KeyRing;

  private constructor(options: SignerOptions, bundle: StoredKeyBundle) {
    const { issuer, keys, clock, random } = options;
    this.#options = options;
    this.#issuer = new CapabilityIssuer({ issuer, key: keys.signing, clock, random });
    this.bundle = bundle;
    this.ring = KeyRing.fromBundle(bundle.token, keys.root.publicKey, bundle.version);
  }

  /** Uses the newest bundle when it holds the signing key; otherwise signs its successor. Throws `store/failed`. */
  static async open(options: SignerOptions, installation: InstallationStore): Promise<Signer> {
    const newest = await installation.newestKeyBundle();
    if (newest !== undefined && holdsKey(newest, options.keys)) return new Signer(options, newest);
    const version = (newest?.version ?? 0) + 1;
    const { kid, publicKey } = options.keys.signing;
    const token = signKeyBundle(options.keys.root, {
      version,
      keys: [{ kid, publicKey: publicKeyText(publicKey) }],
      issuedAtSeconds: Math.floor(options.clock.wallMs() / 1000),
    });
    if (await installation.addKeyBundle({ version, token })) return new Signer(options, { version, token });
    throw new SpaceError("store/failed", { step: "key bundle" });
  }

  /** a link of the chain. `previous` is the sandbox's newest certificate. */
  certificate(
    identity: ExecutionIdentity,
    links: {
      readonly publicKey: string;
      readonly previous: Digest | null;
      readonly restoredFrom: Digest | null;
    },
  ): PublishedCertificate {
    const token = signCertificate(this.#options.keys.signing, {
      identity,
      ...links,
      origin: { kind: "self" },
      issuedAtSeconds: this.#nowSeconds(),
    });
    const { previous, publicKey } = links;
    return { token, digest: certificateDigest(token), previous, publicKey };
  }

  /** */
  retirement(identity: ExecutionIdentity): string {
    return signRetirement(this.#options.keys.signing, { identity, issuedAtSeconds: this.#nowSeconds() });
  }

  /** Of a manifest whose inner signature has been verified. */
  countersign(signed: string): string {
    return countersignManifest(this.#options.keys.signing, signed);
  }

  /** of an access that has been authorised. */
  capability(request: CapabilityRequest): { readonly token: string; readonly claims: CapabilityClaims } {
    return this.#issuer.issue(request);
  }

  #nowSeconds(): number {
    return Math.floor(this.#options.clock.wallMs() / 1000);
  }
}

function holdsKey({ token, version }: StoredKeyBundle, { root, signing }: InstallationKeys): boolean {
  return KeyRing.fromBundle(token, root.publicKey, version).find(signing.kid) !== undefined;
}
