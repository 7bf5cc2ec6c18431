// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

export interface Comment {
  readonly line: number;
  readonly text: string;
}

export interface Import {
  readonly line: number;
  readonly specifier: string;
}

/** A TypeScript source, read just closely enough to tell code from comments and strings. */
export interface Source {
  /** The text with the insides of comments, strings and regular expressions blanked; positions are kept. */
  readonly code: string;
  readonly comments: readonly Comment[];
  /** Every module named by an import, export, dynamic import, require or import.meta.resolve; types too. */
  readonly imports: readonly Import[];
}

const regexMayFollow =
  /(?:^|[(,=:[!&|?{};+\-*%<>~^]|\b(?:return|typeof|case|in|of|await|yield|throw|void|else|do))$/;

const importForms = [
  /\b(?:import|export)\b[^;"'`]*?\bfrom\s*(?=["'])/g,
  /\bimport\s*(?=["'])/g,
  /\b(?:import|require|import\.meta\.resolve)\s*\(\s*(?=["'])/g,
];

export function lineAt(text: string, offset: number): number {
  let line = 1;
  for (let i = text.indexOf("\n"); i !== -1 && i < offset; i = text.indexOf("\n", i + 1)) line += 1;
  return line;
}

export function readSource(text: string): Source {
  const { code, comments } = blank(text);
  const imports: Import[] = [];
  for (const form of importForms) {
    for (const match of code.matchAll(form)) {
      const quoteAt = match.index + match[0].length;
      const end = code.indexOf(text.charAt(quoteAt), quoteAt + 1);
      imports.push({ line: lineAt(text, quoteAt), specifier: text.slice(quoteAt + 1, end) });
    }
  }
  return { code, comments, imports };
}

function blank(text: string): { readonly code: string; readonly comments: readonly Comment[] } {
  const comments: Comment[] = [];
  const templates: number[] = []; // brace depth at which each open template's `${` began
  let code = "";
  let depth = 0;
  let at = 0;

  const hide = (end: number): void => {
    code += text.slice(at, end).replace(/[^\n]/g, " ");
    at = end;
  };
  const show = (end: number): void => {
    code += text.slice(at, end);
    at = end;
  };
  const template = (): void => {
    const part = templateEnd(text, at);
    hide(part.end);
    if (part.opensExpression) templates.push(depth);
    show(at + (part.opensExpression ? 2 : 1));
  };

  while (at < text.length) {
    const char = text.charAt(at);
    const pair = text.slice(at, at + 2);
    if (pair === "//" || pair === "/*") {
      const end = commentEnd(text, at);
      comments.push({ line: lineAt(text, at), text: text.slice(at, end) });
      hide(end);
    } else if (char === '"' || char === "'") {
      const end = quoteEnd(text, at + 1, char);
      show(at + 1);
      hide(end);
      show(at + 1);
    } else if (char === "`") {
      show(at + 1);
      template();
    } else if (char === "}" && templates.at(-1) === depth) {
      templates.pop();
      show(at + 1);
      template();
    } else if (char === "/" && regexMayFollow.test(code.slice(-200).trimEnd())) {
      hide(regexEnd(text, at));
    } else {
      if (char === "{") depth += 1;
      if (char === "}") depth -= 1;
      show(at + 1);
    }
  }
  return { code, comments };
}

function commentEnd(text: string, at: number): number {
  const block = text.charAt(at + 1) === "*";
  const end = block ? text.indexOf("*/", at + 2) : text.indexOf("\n", at);
  if (end === -1) return text.length;
  return block ? end + 2 : end;
}

function quoteEnd(text: string, from: number, quote: string): number {
  let at = from;
  while (at < text.length && text.charAt(at) !== quote) at += text.charAt(at) === "\\" ? 2 : 1;
  return Math.min(at, text.length);
}

function templateEnd(
  text: string,
  from: number,
): { readonly end: number; readonly opensExpression: boolean } {
  let at = from;
  while (at < text.length && text.charAt(at) !== "`") {
    if (text.startsWith("${", at)) return { end: at, opensExpression: true };
    at += text.charAt(at) === "\\" ? 2 : 1;
  }
  return { end: Math.min(at, text.length), opensExpression: false };
}

function regexEnd(text: string, from: number): number {
  let inClass = false;
  for (let at = from + 1; at < text.length; at += 1) {
    const char = text.charAt(at);
    if (char === "\\") at += 1;
    else if (char === "[") inClass = true;
    else if (char === "]") inClass = false;
    else if (char === "/" && !inClass) return at + 1;
    else if (char === "\n") return at;
  }
  return text.length;
}
