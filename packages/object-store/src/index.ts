// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

export { type ArchiveOptions, chunkedArchives } from "./chunked-archives.ts";
export { DirectoryObjectStore, objectLimitBytes } from "./directory-object-store.ts";
