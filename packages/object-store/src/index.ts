// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

export { DirectoryByteStore, type DirectoryByteStoreOptions } from "./directory-byte-store.ts";
export { S3ByteStore, type S3Options } from "./s3-byte-store.ts";
