// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors
//
// HMAC-SHA-256 (RFC 2104, FIPS 180-4), small rather than fast: it runs once per connection.
#include "common.h"

static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t x, int n) { return x >> n | x << (32 - n); }

static void sha256_block(struct sha256 *h, const uint8_t *block) {
  uint32_t w[64], s[8];
  for (int i = 0; i < 16; i++) {
    w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
  }
  for (int i = 16; i < 64; i++) {
    uint32_t a = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
    uint32_t b = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + a + w[i - 7] + b;
  }
  memcpy(s, h->state, sizeof s);
  for (int i = 0; i < 64; i++) {
    uint32_t e = rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25);
    uint32_t t1 = s[7] + e + ((s[4] & s[5]) ^ (~s[4] & s[6])) + round_constants[i] + w[i];
    uint32_t a = rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22);
    uint32_t t2 = a + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
    memmove(s + 1, s, 7 * sizeof *s);
    s[4] += t1;
    s[0] = t1 + t2;
  }
  for (int i = 0; i < 8; i++) h->state[i] += s[i];
}

static void sha256_begin(struct sha256 *h) {
  static const uint32_t initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  memcpy(h->state, initial, sizeof initial);
  h->length = 0;
}

static void sha256_add(struct sha256 *h, const uint8_t *bytes, size_t length) {
  for (size_t i = 0; i < length; i++) {
    h->block[h->length++ % 64] = bytes[i];
    if (h->length % 64 == 0) sha256_block(h, h->block);
  }
}

static void sha256_end(struct sha256 *h, uint8_t digest[32]) {
  uint64_t bits = h->length * 8;
  static const uint8_t one = 0x80, zero = 0;
  sha256_add(h, &one, 1);
  while (h->length % 64 != 56) sha256_add(h, &zero, 1);
  for (int i = 7; i >= 0; i--) {
    uint8_t byte = (uint8_t)(bits >> (8 * i));
    sha256_add(h, &byte, 1);
  }
  for (int i = 0; i < 32; i++) digest[i] = (uint8_t)(h->state[i / 4] >> (24 - 8 * (i % 4)));
}

void hmac_sha256(const uint8_t key[32], const void *const parts[], const size_t lengths[], int n, uint8_t mac[32]) {
  struct sha256 h;
  uint8_t pad[64], inner[32];
  memset(pad, 0x36, sizeof pad);
  for (int i = 0; i < 32; i++) pad[i] ^= key[i];
  sha256_begin(&h);
  sha256_add(&h, pad, sizeof pad);
  for (int i = 0; i < n; i++) sha256_add(&h, parts[i], lengths[i]);
  sha256_end(&h, inner);
  for (int i = 0; i < 64; i++) pad[i] ^= 0x36 ^ 0x5c;
  sha256_begin(&h);
  sha256_add(&h, pad, sizeof pad);
  sha256_add(&h, inner, sizeof inner);
  sha256_end(&h, mac);
  explicit_bzero(pad, sizeof pad);
  explicit_bzero(&h, sizeof h);
}

bool same_bytes(const uint8_t *a, const uint8_t *b, size_t length) {
  uint8_t different = 0;
  for (size_t i = 0; i < length; i++) different |= (uint8_t)(a[i] ^ b[i]);
  return different == 0;
}
